package api

import (
	"strconv"
	"strings"

	"cupola/server/bosh/director"
	"cupola/store"
	"cupola/store/cf"
)

// viewBOSHTask is a task, without what was asked for: that holds secrets.
func viewBOSHTask(_ *call, t *cf.BOSHTask) doc {
	return doc{"id": t.Number, "deployment": t.DeploymentName, "kind": t.Kind, "user": t.User, "state": t.State, "result": t.Result,
		"created_at": t.CreatedAt, "started_at": t.StartedAt, "ended_at": t.EndedAt}
}

// listBOSHTasks lists the newest tasks, or those that the query's "state", "deployment" and
// "limit" choose.
func listBOSHTasks(c *call) (*response, error) {
	q := store.Query{Order: "number", Desc: true, Page: 1, PerPage: 30, Where: map[string][]string{"kinds": director.Changing()}} // as bosh tasks --recent
	query := c.Request.URL.Query()
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > director.KeptTasks {
			return nil, cf.Errorf(cf.BadQueryParameter, "The query parameter is invalid: Limit must be a number from 1 to %d", director.KeptTasks)
		}
		q.PerPage = n
	}
	if text := query.Get("state"); text != "" {
		q.Where["states"] = strings.Split(text, ",")
	}
	if name := query.Get("deployment"); name != "" {
		q.Where["deployment_names"] = []string{name}
	}
	rows, err := store.BOSHTasks.Matching(c.Tx, q)
	if err != nil {
		return nil, err
	}
	return ok(views(c, rows, viewBOSHTask))
}

// listBOSHLocks lists the deployments that a task is changing: other tasks wait for it.
func listBOSHLocks(c *call) (*response, error) {
	rows, err := store.BOSHTasks.Open(c.Tx)
	if err != nil {
		return nil, err
	}
	all := []doc{}
	for _, t := range rows {
		if t.State == cf.BOSHProcessing {
			all = append(all, doc{"type": "deployment", "resource": t.DeploymentName, "task_id": t.Number, "since": t.StartedAt})
		}
	}
	return ok(all)
}

// listBOSHEvents lists the newest 200 events that the query's filters choose, as BOSH's
// director does.
func listBOSHEvents(c *call) (*response, error) {
	q, err := director.EventQuery(c.Request.URL.Query())
	if err != nil {
		return nil, err
	}
	rows, err := store.BOSHEvents.Matching(c.Tx, q)
	if err != nil {
		return nil, err
	}
	return ok(views(c, rows, viewBOSHEvent))
}

func viewBOSHEvent(_ *call, e *cf.BOSHEvent) doc {
	return doc{"id": e.Number, "parent_id": e.Parent, "timestamp": e.CreatedAt, "user": e.User, "action": e.Action, "object_type": e.ObjectType, "object_name": e.ObjectName,
		"task": e.Task, "deployment": e.Deployment, "instance": e.Instance, "error": e.Error}
}

// findBOSHTask finds the task of {number}, for admins.
func findBOSHTask(c *call) (*cf.BOSHTask, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	number := c.param("number")
	t, err := store.BOSHTasks.First(c.Tx, store.Query{Where: map[string][]string{"numbers": {number}}})
	if store.IsNotFound(err) {
		return nil, cf.Errorf(cf.ResourceNotFound, "Task %s not found", number)
	}
	return t, err
}

func cancelBOSHTask(c *call) (*response, error) {
	t, err := findBOSHTask(c)
	if err != nil {
		return nil, err
	}
	if err := director.Cancel(c.Tx, t); err != nil {
		return nil, err
	}
	return ok(viewBOSHTask(c, t))
}

// showBOSHTask shows a task with what it has done, from the events on that come
// after the query's "after", which is a count.
func showBOSHTask(c *call) (*response, error) {
	t, err := findBOSHTask(c)
	if err != nil {
		return nil, err
	}
	rows, err := store.BOSHTaskEvents.By(c.Tx, "task_guids", t.GUID)
	if err != nil {
		return nil, err
	}
	after, _ := strconv.Atoi(c.Request.URL.Query().Get("after"))
	events := []doc{}
	for _, e := range rows[min(max(after, 0), len(rows)):] {
		events = append(events, doc{"at": e.CreatedAt, "stage": e.Stage, "subject": e.Subject, "state": e.State, "detail": e.Detail})
	}
	ran, err := director.ErrandResults(t)
	if err != nil {
		return nil, err
	}
	return ok(with(viewBOSHTask(c, t), doc{"events": events, "errands": append([]director.ErrandResult{}, ran...)}))
}
