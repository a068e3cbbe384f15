package deployment

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// boshView is a deployment as the API shows it.
type boshView struct {
	GUID      string    `json:"guid"`
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`
	Manifest  string    `json:"manifest,omitempty"`
}

type listCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the deployments.
func (c *listCmd) Run(e *command.Env) error {
	return printList(e, &c.Flags, "/v1/deployments", c.JSON, "NAME\tVERSION\tDEPLOYED", func(w io.Writer, d boshView) {
		fmt.Fprintf(w, "%s\t%d\t%s\n", d.Name, d.Version, command.When(d.UpdatedAt))
	})
}

// printList gets a list from the API and prints it as JSON, or as a table with row's
// lines below the heads.
func printList[T any](e *command.Env, flags *capi.Flags, path string, asJSON bool, heads string, row func(w io.Writer, v T)) error {
	var all []T
	if err := get(e, flags, path, &all); err != nil {
		return err
	}
	if asJSON {
		return command.WriteJSON(e.Out, all)
	}
	w := tabwriter.NewWriter(e.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, heads)
	for _, v := range all {
		row(w, v)
	}
	return w.Flush()
}

// get logs in and gets a document of the API.
func get(e *command.Env, flags *capi.Flags, path string, out any) error {
	api, err := flags.Login(e.Ctx)
	if err != nil {
		return err
	}
	return api.Call(e.Ctx, "GET", path, nil, out)
}

// boshOne is the deployment that a command is about.
type boshOne struct {
	capi.Flags
	Deployment string `arg:"" help:"The deployment."`
}

func (c *boshOne) path() string { return "/v1/deployments/" + url.PathEscape(c.Deployment) }

type inspectCmd struct{ boshOne }

// Run prints the manifest of a deployment.
func (c *inspectCmd) Run(e *command.Env) error {
	var d boshView
	if err := get(e, &c.Flags, c.path(), &d); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "# %s, version %d, deployed %s\n%s", d.Name, d.Version, command.When(d.UpdatedAt), d.Manifest)
	return err
}

type instancesCmd struct {
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
func (c *instancesCmd) Run(e *command.Env) error {
	return printList(e, &c.Flags, c.path()+"/instances", c.JSON, "INSTANCE\tSTATE\tAZ\tADDRESS\tSINCE\tNOTE", func(w io.Writer, i boshInstanceView) {
		note := strings.ReplaceAll(i.Failure, "\n", " ")
		if note == "" && !i.UpToDate && i.Lifecycle == "service" {
			note = "an update is outstanding"
		}
		if i.Lifecycle != "service" && note == "" {
			note = i.Lifecycle
		}
		fmt.Fprintf(w, "%s/%d\t%s\t%s\t%s\t%s\t%s\n", i.Group, i.Index, i.State, orDash(i.AZ), orDash(i.Address), command.When(i.Since), note)
		for _, p := range i.Processes {
			if c.Processes {
				fmt.Fprintf(w, "  %s\t%s\t\t\t\t%s\n", p.Name, processState(p.State, p.Ready, p.Role), strings.ReplaceAll(p.Details, "\n", " "))
			}
		}
	})
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

type variablesCmd struct {
	boshOne
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the variables of a deployment, without their values.
func (c *variablesCmd) Run(e *command.Env) error {
	type variable struct {
		Name      string    `json:"name"`
		Type      string    `json:"type"`
		UpdatedAt time.Time `json:"updated_at"`
	}
	return printList(e, &c.Flags, c.path()+"/variables", c.JSON, "VARIABLE\tTYPE\tSINCE", func(w io.Writer, v variable) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, v.Type, command.When(v.UpdatedAt))
	})
}

type disksCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the persistent disks of all deployments, and those of none.
func (c *disksCmd) Run(e *command.Env) error {
	type disk struct {
		GUID       string `json:"guid"`
		Deployment string `json:"deployment"`
		Group      string `json:"group"`
		Index      int    `json:"index"`
		SizeMB     int    `json:"size_mb"`
		Orphaned   bool   `json:"orphaned"`
	}
	return printList(e, &c.Flags, "/v1/disks", c.JSON, "DISK\tDEPLOYMENT\tINSTANCE\tSIZE\tSTATE", func(w io.Writer, d disk) {
		state := "attached"
		if d.Orphaned {
			state = "orphaned"
		}
		fmt.Fprintf(w, "%s\t%s\t%s/%d\t%d MB\t%s\n", d.GUID, d.Deployment, d.Group, d.Index, d.SizeMB, state)
	})
}

type logsCmd struct {
	boshOne
	Follow bool `help:"Follow the log." short:"f"`
}

// Run shows what the processes and scripts of a deployment have written of late.
func (c *logsCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	var d boshView
	if err := api.Call(e.Ctx, "GET", c.path(), nil, &d); err != nil {
		return err
	}
	for from := int64(0); ; {
		last, err := showLogs(e, api, d.GUID, from)
		if err != nil || !c.Follow {
			return err
		}
		from = max(from, last+1)
		if capi.Pause(e.Ctx, taskPoll) != nil {
			return nil
		}
	}
}

// showLogs prints lines from a time on, or the last ones when that is 0, and tells
// when the last of them was written.
func showLogs(e *command.Env, api *capi.Client, guid string, from int64) (last int64, err error) {
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
	if err := api.Call(e.Ctx, "GET", fmt.Sprintf("/api/v1/read/%s?envelope_types=LOG&limit=1000&start_time=%d&descending=%t", guid, from, newest), nil, &answer); err != nil {
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
		// Each instance has separate LRPs, so the index in the envelope is always 0.
		// The cell's own lines have no group in their source.
		group := line.Tags["job"]
		process := strings.TrimPrefix(line.Tags["source_type"], group+"/")
		fmt.Fprintf(e.Out, "%s [%s/%s %s] %s\n", time.Unix(0, at).Local().Format("15:04:05.00"), group, line.Tags["index"], process, strings.Map(command.Printed, string(text)))
	}
	return last, nil
}
