package cronjobs

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// What an app and a job may have.
const (
	maxJobs      = 50 // of an app
	maxSchedules = 20 // of a job
	maxName      = 100
	maxCommand   = 4096      // characters, as of a task
	maxMB        = 1<<31 - 1 // as of a task
	maxTimeout   = 7 * 24 * 3600
	// defaultTimeout lets a job that hangs run again the next day: it keeps its next runs
	// from starting.
	defaultTimeout = 24 * 3600

	maxURL             = 2048 // bytes, of a call
	maxAuthHeader      = 4096 // likewise
	maxCallTimeout     = 600
	defaultCallTimeout = 60
	// noAuthHeader is what the scheduler's plugin sends for want of another: no
	// Authorization.
	noAuthHeader = "default"
)

// sent are fields that the scheduler's plugin sends with a request, empty: it sends what
// answers show.
type sent struct {
	GUID      json.RawMessage `json:"guid"`
	State     json.RawMessage `json:"state"`
	CreatedAt json.RawMessage `json:"created_at"`
	UpdatedAt json.RawMessage `json:"updated_at"`
	AppGUID   json.RawMessage `json:"app_guid"`
	SpaceGUID json.RawMessage `json:"space_guid"`
}

// NewJob is a job to be made.
type NewJob struct {
	sent
	Name     string            `json:"name"`
	Command  string            `json:"command"`
	MemoryMB change.Field[int] `json:"memory_in_mb"`
	DiskMB   change.Field[int] `json:"disk_in_mb"`
	Timeout  change.Field[int] `json:"timeout_in_seconds"`
}

// checkName lists what is wrong with the name of a job.
func checkName(name string) []string {
	printable := !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
	return control.Must(strings.TrimSpace(name) != "", "Name must not be blank",
		printable && utf8.RuneCountInString(name) <= maxName, fmt.Sprintf("Name must have at most %d characters, all printable", maxName))
}

// Validate lists what is wrong with a request alone.
func (r NewJob) Validate() []string {
	return append(checkName(r.Name), control.Must(strings.TrimSpace(r.Command) != "", "Command must not be blank",
		utf8.RuneCountInString(r.Command) <= maxCommand, fmt.Sprintf("Command must be shorter than %d characters", maxCommand+1),
		r.MemoryMB.V >= 0 && r.MemoryMB.V <= maxMB, fmt.Sprintf("Memory in mb must be from 0 (the default of tasks) to %d", maxMB),
		r.DiskMB.V >= 0 && r.DiskMB.V <= maxMB, fmt.Sprintf("Disk in mb must be from 0 (the default of tasks) to %d", maxMB),
		r.Timeout.Or(1) >= 1 && r.Timeout.V <= maxTimeout, fmt.Sprintf("Timeout in seconds must be from 1 to %d", maxTimeout))...)
}

// NewCall is a call to be made.
type NewCall struct {
	sent
	Name       string            `json:"name"`
	URL        string            `json:"url"`
	AuthHeader string            `json:"auth_header"`
	Timeout    change.Field[int] `json:"timeout_in_seconds"`
}

// Validate lists what is wrong with a request alone.
func (r NewCall) Validate() []string {
	u, err := url.Parse(r.URL)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
	return append(checkName(r.Name), control.Must(web, "Url must be one of http or https, without a user: give auth_header",
		len(r.URL) <= maxURL, fmt.Sprintf("Url must have at most %d bytes", maxURL),
		len(r.AuthHeader) <= maxAuthHeader && !strings.ContainsFunc(r.AuthHeader, unicode.IsControl),
		fmt.Sprintf("Auth header must have at most %d bytes, none of them control characters", maxAuthHeader),
		r.Timeout.Or(1) >= 1 && r.Timeout.V <= maxCallTimeout, fmt.Sprintf("Timeout in seconds must be from 1 to %d", maxCallTimeout))...)
}

// Create makes a job of an app.
func Create(c *control.Session, app *cf.App, req NewJob) (*cf.AppJob, error) {
	return create(c, app, &cf.AppJob{Kind: cf.KindJob, Name: req.Name, Command: req.Command, MemoryMB: req.MemoryMB.V, DiskMB: req.DiskMB.V,
		Timeout: req.Timeout.Or(defaultTimeout)})
}

// CreateCall makes a call of an app.
func CreateCall(c *control.Session, app *cf.App, req NewCall) (*cf.AppJob, error) {
	j := &cf.AppJob{Kind: cf.KindCall, Name: req.Name, URL: req.URL, AuthHeader: req.AuthHeader, Timeout: req.Timeout.Or(defaultCallTimeout)}
	if j.AuthHeader == noAuthHeader {
		j.AuthHeader = ""
	}
	return create(c, app, j)
}

// create makes a job or a call. Its name is unique in the space: clients name them by it.
func create(c *control.Session, app *cf.App, j *cf.AppJob) (*cf.AppJob, error) {
	same, err := store.AppJobs.Where(c.Tx, map[string][]string{"space_guids": {app.SpaceGUID}, "kinds": {string(j.Kind)}, "names": {j.Name}})
	if err != nil {
		return nil, err
	}
	if len(same) > 0 {
		return nil, cf.Unprocessable("A %s with the name '%s' exists in this space: choose another name.", j.Kind, j.Name)
	}
	n, err := store.AppJobs.Count(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "kinds": {string(j.Kind)}}})
	if err != nil {
		return nil, err
	}
	if n >= maxJobs {
		return nil, cf.Unprocessable("An app can have at most %d %ss: delete one first.", maxJobs, j.Kind)
	}
	j.AppGUID, j.State = app.GUID, cf.JobPending
	if err := store.AppJobs.Insert(c.Tx, j); err != nil {
		return nil, err
	}
	return j, event(c, audit.AppJobCreate, app, j, nil)
}

// Find is the job of a kind with a GUID and its app, if the actor sees them and satisfies
// the rule at the app's space.
func Find(c *control.Session, kind cf.AppJobKind, guid string) (*cf.AppJob, *cf.App, error) {
	j, err := store.AppJobs.Visible(c.Tx, guid, c.Scope)
	if store.IsNotFound(err) || err == nil && j.Kind != kind {
		return nil, nil, cf.Errorf(cf.ResourceNotFound, "%s not found", title(kind))
	}
	if err != nil {
		return nil, nil, err
	}
	app, err := c.App(j.AppGUID)
	return j, app, err
}

// title is a kind as texts begin with it.
func title(kind cf.AppJobKind) string {
	if kind == cf.KindCall {
		return "Call"
	}
	return "Job"
}

// Delete deletes a job with its schedules and history. A run that goes on does so, as a task
// of the app or as a request.
func Delete(c *control.Session, kind cf.AppJobKind, guid string) error {
	j, app, err := Find(c, kind, guid)
	if err != nil {
		return err
	}
	if err := event(c, audit.AppJobDelete, app, j, nil); err != nil {
		return err
	}
	return store.AppJobs.Delete(c.Tx, j.GUID)
}

// event records what happened to a job of an app.
func event(c *control.Session, kind audit.Type, app *cf.App, j *cf.AppJob, more audit.Data) error {
	data := audit.Data{string(j.Kind) + "_guid": j.GUID, "name": j.Name}
	for k, v := range more {
		data[k] = v
	}
	return c.AuditApp(kind, app, c.Triggered(data))
}
