package deployment

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// boshInstanceView is an instance as the API shows it.
type boshInstanceView struct {
	GUID      string        `json:"guid"`
	Group     string        `json:"group"`
	Index     int           `json:"index"`
	AZ        string        `json:"az"`
	Lifecycle string        `json:"lifecycle"`
	State     string        `json:"state"`
	Since     time.Time     `json:"since"`
	Address   string        `json:"address"`
	Disk      string        `json:"disk"`    // GUID; "": it has no persistent disk
	Stopped   bool          `json:"stopped"` // it was asked to stop
	UpToDate  bool          `json:"up_to_date"`
	Failure   string        `json:"failure"`
	Processes []processView `json:"processes"`
}

// processView is a process of an instance.
type processView struct {
	GUID       string `json:"guid"`
	Name       string `json:"name"` // job/process
	State      string `json:"state"`
	Ready      bool   `json:"ready"`
	Role       string `json:"role"` // active or passive; "" has none
	CrashCount int    `json:"crash_count"`
	Details    string `json:"details"`
	// With vitals:
	Uptime int     `json:"uptime_seconds,omitempty"`
	CPU    float64 `json:"cpu_percent,omitempty"` // of one core
	Memory int64   `json:"memory_bytes,omitempty"`
	Disk   int64   `json:"disk_bytes,omitempty"`
}

func (i boshInstanceView) name() string { return fmt.Sprintf("%s/%d", i.Group, i.Index) }

// failing reports whether the instance, or a process of it, is not as it should be.
func (i boshInstanceView) failing() bool {
	if i.Failure != "" {
		return true
	}
	return i.Lifecycle == "service" && !i.Stopped && i.State != "running"
}

// process finds a running process by "job/process", the job or the process; "" takes the
// first one.
func (i boshInstanceView) process(name string) (processView, error) {
	for _, p := range i.Processes {
		job, process, _ := strings.Cut(p.Name, "/")
		if p.State == "running" && (name == "" || name == p.Name || name == job || name == process) {
			return p, nil
		}
	}
	if name != "" {
		return processView{}, fmt.Errorf("%s has no running process %q: 'cupola deployment instances --ps' lists them", i.name(), name)
	}
	return processView{}, fmt.Errorf("%s has no running process; start it with 'cupola deployment start'", i.name())
}

// slug is what a user calls instances: all of them, a group, or one of it by its index
// or GUID.
type slug struct{ group, id string }

func parseSlug(text string) (slug, error) {
	group, id, one := strings.Cut(text, "/")
	if text != "" && group == "" || one && id == "" {
		return slug{}, fmt.Errorf("invalid instance %q: give an instance group, or an instance like nats/0 or nats/GUID", text)
	}
	return slug{group, id}, nil
}

func (s slug) names(i boshInstanceView) bool {
	return (s.group == "" || s.group == i.Group) && (s.id == "" || s.id == strconv.Itoa(i.Index) || s.id == i.GUID)
}

// instancesOf finds the instances of a deployment that a user names; there is at least
// one.
func instancesOf(e *command.Env, api *capi.Client, deployment, text string) (named []boshInstanceView, err error) {
	s, err := parseSlug(text)
	if err != nil {
		return nil, err
	}
	var all []boshInstanceView
	if err := api.Call(e.Ctx, "GET", "/v1/deployments/"+url.PathEscape(deployment)+"/instances", nil, &all); err != nil {
		return nil, err
	}
	for _, i := range all {
		if s.names(i) {
			named = append(named, i)
		}
	}
	if named == nil {
		return nil, fmt.Errorf("deployment %s has no instance %q: 'cupola deployment instances %s' lists them", deployment, text, deployment)
	}
	return named, nil
}
