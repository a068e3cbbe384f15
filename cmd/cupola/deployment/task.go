package deployment

import (
	"errors"
	"fmt"
	"io"
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
}

func (t *boshTask) ended() bool { return t.State != "queued" && t.State != "processing" }

// taskPoll is how often a task is looked at.
const taskPoll = 300 * time.Millisecond

// taskError begins the error of a step, as the bosh CLI has it.
const taskError = "                     L Error: "

// followTask shows what a task does until it has ended; it fails when the task
// does.
func followTask(e *command.Env, api *capi.Client, t boshTask) error {
	began, seen, told, failed := map[string]time.Time{}, 0, false, ""
	for {
		if err := api.Call(e.Ctx, "GET", fmt.Sprintf("/v1/deployment_tasks/%d?after=%d", t.ID, seen), nil, &t); err != nil {
			return unfollowed(e, t, err)
		}
		if !told {
			fmt.Fprintf(e.Out, "Task %d\n\n", t.ID)
			told = true
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
	ID int `arg:"" help:"The task's number."`
}

// Run shows a task, and follows it if it has not ended.
func (c *taskCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	return followTask(e, api, boshTask{ID: c.ID})
}

type tasksCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the last tasks.
func (c *tasksCmd) Run(e *command.Env) error {
	return printList(e, &c.Flags, "/v1/deployment_tasks", c.JSON, "TASK\tSTATE\tDEPLOYMENT\tKIND\tUSER\tSTARTED\tRESULT", func(w io.Writer, t boshTask) {
		result, _, _ := strings.Cut(t.Result, "\n")
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.State, t.Deployment, t.Kind, t.User, command.When(t.StartedAt), result)
	})
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

type deleteDiskCmd struct {
	capi.Flags
	GUID string `arg:"" name:"guid" help:"The disk's GUID, from disks."`
}

// Run deletes a disk, with all that is on it.
func (c *deleteDiskCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	if err := api.Call(e.Ctx, "DELETE", "/v1/disks/"+url.PathEscape(c.GUID), nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Deleted the disk %s.\n", c.GUID)
	return err
}

// ask requests a task of a deployment, and follows it.
func ask(e *command.Env, flags *capi.Flags, deployment string, what capi.Doc) error {
	api, err := flags.Login(e.Ctx)
	if err != nil {
		return err
	}
	var t boshTask
	if err := api.Call(e.Ctx, "POST", "/v1/deployments/"+url.PathEscape(deployment)+"/tasks", what, &t); err != nil {
		return err
	}
	return followTask(e, api, t)
}

// boshInstancesFlags say which instances something is about.
type boshInstancesFlags struct {
	capi.Flags
	Deployment string `arg:"" help:"The deployment."`
	Instance   string `arg:"" optional:"" help:"An instance group, or an instance like nats/0; all by default." placeholder:"GROUP[/INDEX]"`
}

func (f *boshInstancesFlags) ask(e *command.Env, kind string) error {
	what := capi.Doc{"kind": kind}
	if f.Instance != "" {
		group, index, one := strings.Cut(f.Instance, "/")
		what["group"] = group
		if one {
			n, err := strconv.Atoi(index)
			if err != nil || n < 0 {
				return fmt.Errorf("invalid instance %q: give an instance group, or an instance like %s/0", f.Instance, group)
			}
			what["index"] = n
		}
	}
	return ask(e, &f.Flags, f.Deployment, what)
}

type startCmd struct{ boshInstancesFlags }
type stopCmd struct{ boshInstancesFlags }
type restartCmd struct{ boshInstancesFlags }
type recreateCmd struct{ boshInstancesFlags }

// Run starts instances.
func (c *startCmd) Run(e *command.Env) error { return c.ask(e, "start") }

// Run stops instances; they stay so until they are started.
func (c *stopCmd) Run(e *command.Env) error { return c.ask(e, "stop") }

// Run stops instances and starts them again.
func (c *restartCmd) Run(e *command.Env) error { return c.ask(e, "restart") }

// Run recreates instances; persistent disks stay.
func (c *recreateCmd) Run(e *command.Env) error { return c.ask(e, "recreate") }

type errandCmd struct {
	capi.Flags
	Deployment  string `arg:"" help:"The deployment."`
	Errand      string `arg:"" help:"The errand's instance group."`
	WhenChanged bool   `help:"Skip it if it succeeded and nothing has changed since."`
	KeepAlive   bool   `help:"Keep its ephemeral disk for the next run."`
}

// Run runs an errand.
func (c *errandCmd) Run(e *command.Env) error {
	return ask(e, &c.Flags, c.Deployment, capi.Doc{"kind": "run-errand", "errand": c.Errand, "when_changed": c.WhenChanged, "keep_alive": c.KeepAlive})
}

type deleteCmd struct {
	capi.Flags
	Deployment  string `arg:"" help:"The deployment."`
	DeleteDisks bool   `help:"Delete its persistent disks, too."`
	Force       bool   `help:"Delete it although other deployments use its links."`
}

// Run deletes a deployment. Its persistent disks stay unless they are to go.
func (c *deleteCmd) Run(e *command.Env) error {
	return ask(e, &c.Flags, c.Deployment, capi.Doc{"kind": "delete", "delete_disks": c.DeleteDisks, "force": c.Force})
}
