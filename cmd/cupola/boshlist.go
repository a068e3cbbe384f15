package main

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// boshView is a deployment as the API shows it.
type boshView struct {
	GUID      string    `json:"guid"`
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`
	Manifest  string    `json:"manifest,omitempty"`
}

type boshListCmd struct {
	apiFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the deployments.
func (c *boshListCmd) Run(e *env) error {
	api, err := c.login(e.ctx)
	if err != nil {
		return err
	}
	var all []boshView
	if err := api.call(e.ctx, "GET", "/v1/deployments", nil, &all); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(e.out, all)
	}
	w := tabwriter.NewWriter(e.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tVERSION\tDEPLOYED")
	for _, d := range all {
		fmt.Fprintf(w, "%s\t%d\t%s\n", d.Name, d.Version, when(d.UpdatedAt))
	}
	return w.Flush()
}

// boshOne is the deployment that a command is about.
type boshOne struct {
	apiFlags
	Deployment string `arg:"" help:"The deployment."`
}

func (c *boshOne) get(e *env, what string, out any) error {
	api, err := c.login(e.ctx)
	if err != nil {
		return err
	}
	return api.call(e.ctx, "GET", "/v1/deployments/"+url.PathEscape(c.Deployment)+what, nil, out)
}

type boshInspectCmd struct{ boshOne }

// Run prints the manifest of a deployment.
func (c *boshInspectCmd) Run(e *env) error {
	var d boshView
	if err := c.get(e, "", &d); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.out, "# %s, version %d, deployed %s\n%s", d.Name, d.Version, when(d.UpdatedAt), d.Manifest)
	return err
}

type boshInstancesCmd struct {
	boshOne
	Processes bool `help:"List each instance's processes, too." short:"p"`
	JSON      bool `help:"Print JSON." name:"json"`
}

// boshInstanceView is an instance as the API shows it.
type boshInstanceView struct {
	GUID      string    `json:"guid"`
	Group     string    `json:"group"`
	Index     int       `json:"index"`
	AZ        string    `json:"az"`
	Lifecycle string    `json:"lifecycle"`
	State     string    `json:"state"`
	Since     time.Time `json:"since"`
	Address   string    `json:"address"`
	UpToDate  bool      `json:"up_to_date"`
	Failure   string    `json:"failure"`
	Processes []struct {
		Name       string `json:"name"`
		State      string `json:"state"`
		Ready      bool   `json:"ready"`
		Role       string `json:"role"` // active or passive; "" has none
		CrashCount int    `json:"crash_count"`
		Details    string `json:"details"`
	} `json:"processes"`
}

// Run lists the instances of a deployment.
func (c *boshInstancesCmd) Run(e *env) error {
	var all []boshInstanceView
	if err := c.get(e, "/instances", &all); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(e.out, all)
	}
	w := tabwriter.NewWriter(e.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "INSTANCE\tSTATE\tAZ\tADDRESS\tSINCE\tNOTE")
	for _, i := range all {
		note := strings.ReplaceAll(i.Failure, "\n", " ")
		if note == "" && !i.UpToDate && i.Lifecycle == "service" {
			note = "an update is outstanding"
		}
		if i.Lifecycle != "service" && note == "" {
			note = i.Lifecycle
		}
		fmt.Fprintf(w, "%s/%d\t%s\t%s\t%s\t%s\t%s\n", i.Group, i.Index, i.State, orDash(i.AZ), orDash(i.Address), when(i.Since), note)
		for _, p := range i.Processes {
			if c.Processes {
				fmt.Fprintf(w, "  %s\t%s\t\t\t\t%s\n", p.Name, processState(p.State, p.Ready, p.Role), strings.ReplaceAll(p.Details, "\n", " "))
			}
		}
	}
	return w.Flush()
}

func processState(state string, ready bool, role string) string {
	switch {
	case state == "running" && !ready:
		return "not ready"
	case state == "running" && role != "":
		return role
	}
	return state
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type boshVariablesCmd struct {
	boshOne
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the variables of a deployment, without their values.
func (c *boshVariablesCmd) Run(e *env) error {
	var all []struct {
		Name      string    `json:"name"`
		Type      string    `json:"type"`
		UpdatedAt time.Time `json:"updated_at"`
	}
	if err := c.get(e, "/variables", &all); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(e.out, all)
	}
	w := tabwriter.NewWriter(e.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "VARIABLE\tTYPE\tSINCE")
	for _, v := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, v.Type, when(v.UpdatedAt))
	}
	return w.Flush()
}

type boshDisksCmd struct {
	apiFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the persistent disks of all deployments, and those of none.
func (c *boshDisksCmd) Run(e *env) error {
	api, err := c.login(e.ctx)
	if err != nil {
		return err
	}
	var all []struct {
		GUID       string `json:"guid"`
		Deployment string `json:"deployment"`
		Group      string `json:"group"`
		Index      int    `json:"index"`
		SizeMB     int    `json:"size_mb"`
		Orphaned   bool   `json:"orphaned"`
	}
	if err := api.call(e.ctx, "GET", "/v1/disks", nil, &all); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(e.out, all)
	}
	w := tabwriter.NewWriter(e.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "DISK\tDEPLOYMENT\tINSTANCE\tSIZE\tSTATE")
	for _, d := range all {
		state := "attached"
		if d.Orphaned {
			state = "orphaned"
		}
		fmt.Fprintf(w, "%s\t%s\t%s/%d\t%d MB\t%s\n", d.GUID, d.Deployment, d.Group, d.Index, d.SizeMB, state)
	}
	return w.Flush()
}

type boshLogsCmd struct {
	boshOne
	Follow bool `help:"Follow the log." short:"f"`
}

// Run shows what the processes and scripts of a deployment have written of late.
func (c *boshLogsCmd) Run(e *env) error {
	api, err := c.login(e.ctx)
	if err != nil {
		return err
	}
	var d boshView
	if err := api.call(e.ctx, "GET", "/v1/deployments/"+url.PathEscape(c.Deployment), nil, &d); err != nil {
		return err
	}
	for from := int64(0); ; {
		last, err := showLogs(e, api, d.GUID, from)
		if err != nil || !c.Follow {
			return err
		}
		from = max(from, last+1)
		if pause(e.ctx, taskPoll) != nil {
			return nil
		}
	}
}

// showLogs prints lines from a time on, or the last ones when that is 0, and tells
// when the last of them was written.
func showLogs(e *env, api *client, guid string, from int64) (last int64, err error) {
	var answer struct {
		Envelopes struct {
			Batch []struct {
				Timestamp string
				Tags      map[string]string
				Log       struct{ Payload string }
			}
		}
	}
	newest := from == 0
	if err := api.call(e.ctx, "GET", fmt.Sprintf("/api/v1/read/%s?envelope_types=LOG&limit=1000&start_time=%d&descending=%t", guid, from, newest), nil, &answer); err != nil {
		return from, err
	}
	if newest {
		slices.Reverse(answer.Envelopes.Batch)
	}
	for _, line := range answer.Envelopes.Batch {
		at, err := strconv.ParseInt(line.Timestamp, 10, 64)
		text, err2 := base64.StdEncoding.DecodeString(line.Log.Payload)
		if err != nil || err2 != nil {
			continue
		}
		last = max(last, at)
		// Each instance has LRPs of its own, so that the index in the envelope is
		// always 0. The cell's own lines have no group in their source.
		group := line.Tags["job"]
		process := strings.TrimPrefix(line.Tags["source_type"], group+"/")
		fmt.Fprintf(e.out, "%s [%s/%s %s] %s\n", time.Unix(0, at).Local().Format("15:04:05.00"), group, line.Tags["index"], process, strings.Map(printed, string(text)))
	}
	return last, nil
}
