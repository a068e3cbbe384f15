package boshapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/server/bosh/director"
	"cupola/store"
	"cupola/store/cf"
)

// described are the director's words for tasks.
var described = map[director.Kind]string{
	director.Deploy: "create deployment", director.Delete: "delete deployment", director.RunErrand: "run errand", director.Start: "update deployment",
	director.Stop: "update deployment", director.Restart: "update deployment", director.Recreate: "update deployment", director.DryRun: "create deployment (dry run)",
	director.CreateRelease: "create release", director.DeleteRelease: "delete release", director.ListVMs: "retrieve vm-stats", director.FetchLogs: "fetch logs",
	director.Scan: "scan cloud", director.Resolve: "apply resolutions", director.SSH: "ssh", director.CleanUp: "clean up", director.ChangeDisk: "change disk",
	director.ExportRelease: "export release",
}

func viewTask(t *cf.BOSHTask) (doc, error) {
	ended := t.EndedAt
	if ended.IsZero() {
		ended = t.CreatedAt
	}
	state, result, err := outcome(t)
	return doc{"id": t.Number, "state": state, "description": cmp.Or(described[director.Kind(t.Kind)], t.Kind), "timestamp": ended.Unix(), "started_at": seconds(t.StartedAt),
		"result": result, "user": t.User, "deployment": t.DeploymentName, "context_id": ""}, err
}

// outcome is a task's state and result. An errand that ended with an exit code is done, whatever the code is: only
// then does the CLI ask for what it wrote.
func outcome(t *cf.BOSHTask) (cf.BOSHTaskState, string, error) {
	exited, err := director.Exited(t)
	if err != nil || !exited {
		return t.State, t.Result, err
	}
	ran, err := director.ErrandResults(t)
	failed := 0
	for _, r := range ran {
		if r.ExitCode != 0 {
			failed++
		}
	}
	return cf.BOSHDone, fmt.Sprintf("%d succeeded, %d errored, 0 canceled", len(ran)-failed, failed), err
}

// seconds is a time since 1970; null for none.
func seconds(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.Unix()
}

// listTasks lists the newest tasks; those that only read need verbose=2.
func listTasks(c *call) (*answer, error) {
	q := store.Query{Order: "number", Desc: true, Page: 1, PerPage: director.KeptTasks, Where: map[string][]string{}}
	if text := c.query("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, &refusal{http.StatusBadRequest, 40000, "limit must be a number from 1 on"}
		}
		q.PerPage = min(n, director.KeptTasks)
	}
	if text := c.query("state"); text != "" {
		q.Where["states"] = strings.Split(text, ",")
	}
	if name := c.query("deployment"); name != "" {
		q.Where["deployment_names"] = []string{name}
	}
	if c.query("verbose") != "2" {
		q.Where["kinds"] = director.Changing()
	}
	if c.query("context_id") != "" {
		return ok([]doc{}) // no task has one
	}
	rows, err := store.BOSHTasks.Matching(c.tx, q)
	if err != nil {
		return nil, err
	}
	all := make([]doc, len(rows))
	for n, t := range rows {
		if all[n], err = viewTask(t); err != nil {
			return nil, err
		}
	}
	return ok(all)
}

// task is that of {id}.
func (c *call) task() (*cf.BOSHTask, error) { return c.taskNumbered(c.param("id")) }

func (c *call) taskNumbered(id string) (*cf.BOSHTask, error) {
	t, err := store.BOSHTasks.First(c.tx, store.Query{Where: map[string][]string{"numbers": {id}}})
	if store.IsNotFound(err) {
		return nil, &refusal{http.StatusNotFound, 10000, "Task " + id + " not found"}
	}
	return t, err
}

func showTask(c *call) (*answer, error) {
	t, err := c.task()
	if err != nil {
		return nil, err
	}
	view, err := viewTask(t)
	if err != nil {
		return nil, err
	}
	return ok(view)
}

func cancelTask(c *call) (*answer, error) {
	t, err := c.task()
	if err != nil {
		return nil, err
	}
	if err := director.Cancel(c.tx, t); err != nil {
		return nil, err
	}
	return noContent()
}

// cancelTasks cancels tasks that have not ended, all or those of a deployment, states and
// kinds.
func cancelTasks(c *call) (*answer, error) {
	var req struct {
		Deployment    string
		States, Types []string
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	open, err := store.BOSHTasks.Open(c.tx)
	if err != nil {
		return nil, err
	}
	for _, t := range open {
		if req.Deployment != "" && req.Deployment != t.DeploymentName || req.States != nil && !slices.Contains(req.States, string(t.State)) ||
			req.Types != nil && !slices.Contains(req.Types, typeOf(t)) {
			continue
		}
		if err := director.Cancel(c.tx, t); err != nil {
			return nil, err
		}
	}
	return noContent()
}

// typeOf is the director's type of a task.
func typeOf(t *cf.BOSHTask) string {
	switch director.Kind(t.Kind) {
	case director.Delete:
		return "delete_deployment"
	case director.RunErrand:
		return "run_errand"
	case director.ExportRelease:
		return "export_release"
	}
	return "update_deployment"
}
