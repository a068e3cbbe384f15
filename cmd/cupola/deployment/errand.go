package deployment

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/bosh/agent"
)

type errandsCmd struct {
	boshOne
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the errands of a deployment.
func (c *errandsCmd) Run(e *command.Env) error {
	type errand struct {
		Name string `json:"name"`
	}
	return printList(e, &c.Flags, c.path()+"/errands", c.JSON, "ERRAND", func(w io.Writer, one errand) { fmt.Fprintln(w, one.Name) })
}

type errandCmd struct {
	boshOne
	Errand      string `arg:"" help:"The errand: its instance group, or a job."`
	Instance    string `help:"Run it only on these instances." placeholder:"GROUP[/INDEX|GUID]"`
	WhenChanged bool   `help:"Skip it where it succeeded and nothing has changed since."`
	KeepAlive   bool   `help:"Keep its ephemeral disk for the next run."`
	JSON        bool   `help:"Print the results as JSON." name:"json"`
}

// errandResult is how a script or process of an errand ended.
type errandResult struct {
	Instance string `json:"instance"`
	GUID     string `json:"guid"`
	Job      string `json:"job"`
	Process  string `json:"process,omitempty"`
	Call     string `json:"call"`
	ExitCode int    `json:"exit_code"`
	Reason   string `json:"reason,omitempty"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// Run runs an errand, shows what is done until it has ended, and prints its output.
func (c *errandCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	request := capi.Doc{"kind": "run-errand", "errand": c.Errand, "when_changed": c.WhenChanged, "keep_alive": c.KeepAlive}
	if err := putInstance(e, api, c.Deployment, c.Instance, request); err != nil {
		return err
	}
	t, err := requestTask(e, api, c.Deployment, request)
	if err != nil {
		return err
	}
	progress := *e
	if c.JSON {
		progress.Out = e.Err
	}
	failed := followTask(&progress, api, t)
	results, err := c.results(e, api, t.ID)
	if err != nil {
		return errors.Join(failed, err)
	}
	if c.JSON {
		err = command.WriteJSON(e.Out, results)
	} else {
		err = writeErrands(e, c.Errand, results)
	}
	return errors.Join(failed, err)
}

// results are those of a task, with what the errand wrote.
func (c *errandCmd) results(e *command.Env, api *capi.Client, task int) ([]errandResult, error) {
	var t struct {
		StartedAt time.Time `json:"started_at"`
		Errands   []errandResult
	}
	if err := api.Call(e.Ctx, "GET", fmt.Sprintf("/v1/deployment_tasks/%d", task), nil, &t); err != nil {
		return nil, err
	}
	if len(t.Errands) == 0 {
		return []errandResult{}, nil
	}
	var d boshView
	if err := api.Call(e.Ctx, "GET", c.path(), nil, &d); err != nil {
		return nil, err
	}
	slices.SortStableFunc(t.Errands, func(a, b errandResult) int { return strings.Compare(a.Instance, b.Instance) })
	return t.Errands, readOutput(e, api, d.GUID, t.StartedAt, t.Errands)
}

// outputTime bounds how long to wait for the last lines of an errand. The cell writes one
// when the errand's container is gone.
const outputTime = 10 * time.Second

// readOutput reads what errands wrote since a time from the deployment's log.
func readOutput(e *command.Env, api *capi.Client, deployment string, since time.Time, results []errandResult) error {
	for end := time.Now().Add(outputTime); ; {
		lines, err := linesSince(e, api, deployment, since.UnixNano())
		if err != nil {
			return err
		}
		complete := true
		for n := range results {
			complete = results[n].collect(lines) && complete
		}
		if complete || time.Now().After(end) {
			return nil
		}
		if err := capi.Pause(e.Ctx, taskPoll); err != nil {
			return err
		}
	}
}

// linesSince are the lines of a deployment's log since a time, oldest first.
func linesSince(e *command.Env, api *capi.Client, deployment string, since int64) (all []logLine, err error) {
	const page = 1000
	for {
		var answer struct{ Envelopes struct{ Batch []logLine } }
		if err := api.Call(e.Ctx, "GET", fmt.Sprintf("/api/v1/read/%s?envelope_types=LOG&limit=%d&start_time=%d", deployment, page, since), nil, &answer); err != nil {
			return nil, err
		}
		batch := answer.Envelopes.Batch
		all = append(all, batch...)
		if len(batch) < page {
			return all, nil
		}
		last, err := strconv.ParseInt(batch[len(batch)-1].Timestamp, 10, 64)
		if err != nil {
			return nil, err
		}
		since = last + 1
	}
}

// collect takes what the errand wrote from lines, without what the cell says of its
// container. It reports whether these are all.
func (r *errandResult) collect(lines []logLine) (complete bool) {
	var stdout, stderr strings.Builder
	for _, l := range lines {
		if l.Tags["bosh_call"] != r.Call {
			continue
		}
		payload, err := base64.StdEncoding.DecodeString(l.Log.Payload)
		if err != nil {
			continue
		}
		text := string(payload)
		own, last := agent.CallLine(r.Call, text)
		complete = complete || last
		switch {
		case !own:
		case l.Log.Type == "ERR":
			fmt.Fprintln(&stderr, text)
		default:
			fmt.Fprintln(&stdout, text)
		}
	}
	r.Stdout, r.Stderr = stdout.String(), stderr.String()
	return complete
}

// writeErrands prints the results of an errand.
func writeErrands(e *command.Env, name string, results []errandResult) error {
	if len(results) == 0 {
		_, err := fmt.Fprintf(e.Out, "Errand '%s' ran on no instance: nothing has changed since it succeeded.\n", name)
		return err
	}
	for _, r := range results {
		fmt.Fprintf(e.Out, "\nInstance   %s (%s)\nExit Code  %d\n", r.Instance, r.Job, r.ExitCode)
		for _, of := range []struct{ name, text string }{{"Stdout", r.Stdout}, {"Stderr", r.Stderr}} {
			fmt.Fprintf(e.Out, "%-9s  %s\n", of.name, orDash(strings.ReplaceAll(printedLines(of.text), "\n", "\n           ")))
		}
	}
	return nil
}

// printedLines is a text without what would change a terminal.
func printedLines(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for n := range lines {
		lines[n] = strings.Map(printedOrTab, lines[n])
	}
	return strings.Join(lines, "\n")
}
