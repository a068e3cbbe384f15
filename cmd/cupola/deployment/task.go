package deployment

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// boshTask is a task of a deployment as the API shows it.
type boshTask struct {
	ID         int       `json:"id"`
	Deployment string    `json:"deployment"`
	Kind       string    `json:"kind"`
	User       string    `json:"user"`
	State      string    `json:"state"`
	Result     string    `json:"result"`
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"`
	Events     []struct {
		At                            time.Time
		Stage, Subject, State, Detail string
	} `json:"events"`
	Errands []errandResult `json:"errands"`
}

func (t *boshTask) ended() bool { return t.State != "queued" && t.State != "processing" }

// taskPoll is how often a task is looked at.
const taskPoll = 300 * time.Millisecond

// taskError begins the error of a step, as the bosh CLI has it.
const taskError = "                     L Error: "

// followTask shows what a task does until it has ended; it fails when the task
// does.
func followTask(e *command.Env, api *capi.Client, t boshTask) error {
	began, seen, reported, failed := map[string]time.Time{}, 0, false, ""
	for {
		if err := api.Call(e.Ctx, "GET", fmt.Sprintf("/v1/deployment_tasks/%d?after=%d", t.ID, seen), nil, &t); err != nil {
			return unfollowed(e, t, err)
		}
		if !reported {
			fmt.Fprintf(e.Out, "Task %d\n\n", t.ID)
			reported = true
		}
		seen += len(t.Events)
		for _, v := range t.Events {
			line := fmt.Sprintf("Task %d | %s | %s: %s", t.ID, v.At.Local().Format("15:04:05"), v.Stage, v.Subject)
			switch key := v.Stage + "\n" + v.Subject; v.State {
			case "started":
				began[key] = v.At
				fmt.Fprintln(e.Out, line)
			case "finished":
				fmt.Fprintf(e.Out, "%s (%s)\n", line, v.At.Sub(began[key]).Round(time.Second/10))
			default:
				fmt.Fprintf(e.Out, "%s (%s)\n%s%s\n", line, v.At.Sub(began[key]).Round(time.Second/10), taskError, strings.ReplaceAll(v.Detail, "\n", "\n"+strings.Repeat(" ", len(taskError))))
				failed = v.Detail
			}
		}
		if t.ended() {
			break
		}
		if err := capi.Pause(e.Ctx, taskPoll); err != nil {
			return unfollowed(e, t, err)
		}
	}
	if t.State == "error" && failed != "" && failed == t.Result {
		return fmt.Errorf("task %d failed: see the error above", t.ID)
	}
	if t.State != "done" {
		return fmt.Errorf("task %d ended with %s: %s", t.ID, t.State, strings.TrimSpace(t.Result))
	}
	_, err := fmt.Fprintf(e.Out, "\nTask %d done\n", t.ID)
	return err
}

// unfollowed is why a task was not followed to its end. It goes on all the same,
// be it with the next daemon.
func unfollowed(e *command.Env, t boshTask, err error) error {
	_, unreached := errors.AsType[capi.Unreached](err)
	switch goesOn := fmt.Sprintf("task %d goes on: 'cupola deployment task %d' shows it", t.ID, t.ID); {
	case e.Ctx.Err() != nil:
		return errors.New(goesOn)
	case unreached:
		return fmt.Errorf("%w; with a daemon %s", err, goesOn)
	}
	return err
}

type taskCmd struct {
	capi.Flags
	ID     int  `arg:"" optional:"" help:"The task's number; by default, that of the newest one."`
	Event  bool `help:"Print its events as JSON, one a line, as BOSH's director logs them." xor:"output"`
	Result bool `help:"Print its result." xor:"output"`
}

// Run shows a task, and follows it if it has not ended.
func (c *taskCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	if c.ID == 0 {
		var all []boshTask
		if err := api.Call(e.Ctx, "GET", "/v1/deployment_tasks?limit=1", nil, &all); err != nil {
			return err
		}
		if len(all) == 0 {
			return errors.New("there are no tasks yet")
		}
		c.ID = all[0].ID
	}
	debug := e.Log.Enabled(e.Ctx, slog.LevelDebug) // --debug is a flag of all commands
	if !c.Event && !c.Result && !debug {
		return followTask(e, api, boshTask{ID: c.ID})
	}
	var t boshTask
	if err := api.Call(e.Ctx, "GET", fmt.Sprintf("/v1/deployment_tasks/%d", c.ID), nil, &t); err != nil {
		return err
	}
	switch {
	case c.Event:
		return writeTaskEvents(e, t)
	case debug:
		return writeTaskDebug(e, api, t)
	}
	return writeTaskResult(e, api, t)
}

type tasksCmd struct {
	capi.Flags
	Deployment string      `help:"Only tasks of this deployment." short:"d" placeholder:"NAME"`
	Recent     recentCount `help:"List the last tasks, also those that have ended: 30, or so many." short:"r" bare:"30" placeholder:"NUMBER"`
	JSON       bool        `help:"Print JSON." name:"json"`
}

// Run lists the tasks that have not ended, or the last ones.
func (c *tasksCmd) Run(e *command.Env) error {
	query := url.Values{}
	switch {
	case c.Recent < 0 || c.Recent > maxRecent:
		return fmt.Errorf("invalid --recent %d: give a number from 1 to %d", c.Recent, maxRecent)
	case c.Recent == 0:
		query.Set("state", "queued,processing")
		query.Set("limit", strconv.Itoa(maxRecent))
	default:
		query.Set("limit", strconv.Itoa(int(c.Recent)))
	}
	if c.Deployment != "" {
		query.Set("deployment", c.Deployment)
	}
	return printList(e, &c.Flags, "/v1/deployment_tasks?"+query.Encode(), c.JSON, "TASK\tSTATE\tDEPLOYMENT\tKIND\tUSER\tSTARTED\tENDED\tRESULT", func(w io.Writer, t boshTask) {
		result, _, _ := strings.Cut(t.Result, "\n")
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.State, t.Deployment, t.Kind, t.User, orNever(t.StartedAt), orNever(t.EndedAt), result)
	})
}

func orNever(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return command.When(at)
}

// recentCount is a number of tasks, which may be left out: --recent or --recent=10.
type recentCount int

// maxRecent is the most tasks that the daemon keeps.
const maxRecent = 500

// UnmarshalText reads the value of the flag.
func (r *recentCount) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 {
		return fmt.Errorf("expected a number of tasks from 1 on, got %q", text)
	}
	*r = recentCount(n)
	return nil
}

type cancelCmd struct {
	capi.Flags
	ID int `arg:"" help:"The task's number."`
}

// Run cancels a task.
func (c *cancelCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	if err := api.Call(e.Ctx, "DELETE", fmt.Sprintf("/v1/deployment_tasks/%d", c.ID), nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Cancelling task %d.\n", c.ID)
	return err
}

// ask requests a task of a deployment, and follows it.
func ask(e *command.Env, api *capi.Client, deployment string, what capi.Doc) error {
	t, err := requestTask(e, api, deployment, what)
	if err != nil {
		return err
	}
	return followTask(e, api, t)
}

func requestTask(e *command.Env, api *capi.Client, deployment string, what capi.Doc) (t boshTask, err error) {
	err = api.Call(e.Ctx, "POST", "/v1/deployments/"+url.PathEscape(deployment)+"/tasks", what, &t)
	return t, err
}

type deleteCmd struct {
	capi.Flags
	Deployment  string `arg:"" help:"The deployment."`
	DeleteDisks bool   `help:"Delete its persistent disks, too."`
	Force       bool   `help:"Delete it although other deployments use its links."`
}

// Run deletes a deployment. Its persistent disks stay unless --delete-disks is given.
func (c *deleteCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	return ask(e, api, c.Deployment, capi.Doc{"kind": "delete", "delete_disks": c.DeleteDisks, "force": c.Force})
}
