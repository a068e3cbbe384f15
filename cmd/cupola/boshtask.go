package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
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
func followTask(e *env, api *client, t boshTask) error {
	began, seen, told, failed := map[string]time.Time{}, 0, false, ""
	for {
		if err := api.call(e.ctx, "GET", fmt.Sprintf("/v1/deployment_tasks/%d?after=%d", t.ID, seen), nil, &t); err != nil {
			return unfollowed(e, t, err)
		}
		if !told {
			fmt.Fprintf(e.out, "Task %d\n\n", t.ID)
			told = true
		}
		seen += len(t.Events)
		for _, v := range t.Events {
			line := fmt.Sprintf("Task %d | %s | %s: %s", t.ID, v.At.Local().Format("15:04:05"), v.Stage, v.Subject)
			switch key := v.Stage + "\n" + v.Subject; v.State {
			case "started":
				began[key] = v.At
				fmt.Fprintln(e.out, line)
			case "finished":
				fmt.Fprintf(e.out, "%s (%s)\n", line, v.At.Sub(began[key]).Round(time.Second/10))
			default:
				fmt.Fprintf(e.out, "%s (%s)\n%s%s\n", line, v.At.Sub(began[key]).Round(time.Second/10), taskError, strings.ReplaceAll(v.Detail, "\n", "\n"+strings.Repeat(" ", len(taskError))))
				failed = v.Detail
			}
		}
		if t.ended() {
			break
		}
		if err := pause(e.ctx, taskPoll); err != nil {
			return unfollowed(e, t, err)
		}
	}
	if t.State == "error" && failed != "" && failed == t.Result {
		return fmt.Errorf("task %d failed: see the error above", t.ID)
	}
	if t.State != "done" {
		return fmt.Errorf("task %d ended with %s: %s", t.ID, t.State, strings.TrimSpace(t.Result))
	}
	_, err := fmt.Fprintf(e.out, "\nTask %d done\n", t.ID)
	return err
}

// unfollowed is why a task was not followed to its end. It goes on all the same,
// be it with the next daemon.
func unfollowed(e *env, t boshTask, err error) error {
	_, unreached := errors.AsType[unreached](err)
	switch goesOn := fmt.Sprintf("task %d goes on: 'cupola deployment task %d' shows it", t.ID, t.ID); {
	case e.ctx.Err() != nil:
		return errors.New(goesOn)
	case unreached:
		return fmt.Errorf("%w; with a daemon %s", err, goesOn)
	}
	return err
}

type boshTaskCmd struct {
	apiFlags
	ID int `arg:"" help:"The task's number."`
}

// Run shows a task, and follows it if it has not ended.
func (c *boshTaskCmd) Run(e *env) error {
	api, err := c.login(e.ctx)
	if err != nil {
		return err
	}
	return followTask(e, api, boshTask{ID: c.ID})
}

type boshTasksCmd struct {
	apiFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the last tasks.
func (c *boshTasksCmd) Run(e *env) error {
	api, err := c.login(e.ctx)
	if err != nil {
		return err
	}
	var all []boshTask
	if err := api.call(e.ctx, "GET", "/v1/deployment_tasks", nil, &all); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(e.out, all)
	}
	w := tabwriter.NewWriter(e.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "TASK\tSTATE\tDEPLOYMENT\tKIND\tUSER\tSTARTED\tRESULT")
	for _, t := range all {
		result, _, _ := strings.Cut(t.Result, "\n")
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.State, t.Deployment, t.Kind, t.User, when(t.StartedAt), result)
	}
	return w.Flush()
}

type boshCancelCmd struct {
	apiFlags
	ID int `arg:"" help:"The task's number."`
}

// Run cancels a task.
func (c *boshCancelCmd) Run(e *env) error {
	api, err := c.login(e.ctx)
	if err != nil {
		return err
	}
	if err := api.call(e.ctx, "DELETE", fmt.Sprintf("/v1/deployment_tasks/%d", c.ID), nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "Cancelling task %d.\n", c.ID)
	return err
}

type boshDeleteDiskCmd struct {
	apiFlags
	GUID string `arg:"" name:"guid" help:"The disk's GUID, from disks."`
}

// Run deletes a disk, with all that is on it.
func (c *boshDeleteDiskCmd) Run(e *env) error {
	api, err := c.login(e.ctx)
	if err != nil {
		return err
	}
	if err := api.call(e.ctx, "DELETE", "/v1/disks/"+url.PathEscape(c.GUID), nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "Deleted the disk %s.\n", c.GUID)
	return err
}

// when is a time for people; "-" for none.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// ask has a deployment do something, and follows that.
func ask(e *env, flags *apiFlags, deployment string, what doc) error {
	api, err := flags.login(e.ctx)
	if err != nil {
		return err
	}
	var t boshTask
	if err := api.call(e.ctx, "POST", "/v1/deployments/"+url.PathEscape(deployment)+"/tasks", what, &t); err != nil {
		return err
	}
	return followTask(e, api, t)
}

// boshInstancesFlags say which instances something is about.
type boshInstancesFlags struct {
	apiFlags
	Deployment string `arg:"" help:"The deployment."`
	Instance   string `arg:"" optional:"" help:"An instance group, or an instance like nats/0; all by default." placeholder:"GROUP[/INDEX]"`
}

func (f *boshInstancesFlags) ask(e *env, kind string) error {
	what := doc{"kind": kind}
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
	return ask(e, &f.apiFlags, f.Deployment, what)
}

type boshStartCmd struct{ boshInstancesFlags }
type boshStopCmd struct{ boshInstancesFlags }
type boshRestartCmd struct{ boshInstancesFlags }
type boshRecreateCmd struct{ boshInstancesFlags }

// Run starts instances.
func (c *boshStartCmd) Run(e *env) error { return c.ask(e, "start") }

// Run stops instances; they stay so until they are started.
func (c *boshStopCmd) Run(e *env) error { return c.ask(e, "stop") }

// Run stops instances and starts them again.
func (c *boshRestartCmd) Run(e *env) error { return c.ask(e, "restart") }

// Run makes instances anew; persistent disks stay.
func (c *boshRecreateCmd) Run(e *env) error { return c.ask(e, "recreate") }

type boshErrandCmd struct {
	apiFlags
	Deployment  string `arg:"" help:"The deployment."`
	Errand      string `arg:"" help:"The errand's instance group."`
	WhenChanged bool   `help:"Skip it if it succeeded and nothing has changed since."`
	KeepAlive   bool   `help:"Keep its ephemeral disk for the next run."`
}

// Run runs an errand.
func (c *boshErrandCmd) Run(e *env) error {
	return ask(e, &c.apiFlags, c.Deployment, doc{"kind": "run-errand", "errand": c.Errand, "when_changed": c.WhenChanged, "keep_alive": c.KeepAlive})
}

type boshDeleteCmd struct {
	apiFlags
	Deployment  string `arg:"" help:"The deployment."`
	DeleteDisks bool   `help:"Delete its persistent disks, too."`
}

// Run deletes a deployment. Its persistent disks stay unless they are to go.
func (c *boshDeleteCmd) Run(e *env) error {
	return ask(e, &c.apiFlags, c.Deployment, doc{"kind": "delete", "delete_disks": c.DeleteDisks})
}
