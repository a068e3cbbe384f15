package api

import (
	"net/http"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/store"
	"cupola/store/cf"
)

// commandReader may see what a task runs: Cloud Controller's secrets in a
// space, which a supporter does not see.
const commandReader = authz.SpaceDeveloper | authz.AdminReadOnly

func taskApp(t *cf.Task) string { return t.AppGUID }

var (
	findTask  = anApps(store.Tasks, taskApp)
	labelTask = label(store.Tasks, func(t *cf.Task) *cf.Metadata { return &t.Metadata })
)

func viewTask(c *call, t *cf.Task) doc {
	return with(viewListedTask(c, t), doc{"command": t.Command})
}

// viewListedTask leaves the command out.
func viewListedTask(c *call, t *cf.Task) doc {
	self := "/v3/tasks/" + t.GUID
	return with(resource(t.Resource), doc{
		"sequence_id": t.SequenceID, "name": t.Name, "user": taskUser(c, t), "state": t.State,
		"memory_in_mb": t.MemoryMB, "disk_in_mb": t.DiskMB, "log_rate_limit_in_bytes_per_second": t.LogRateLimit,
		"result": doc{"failure_reason": control.OrNil(t.FailureReason)}, "droplet_guid": t.DropletGUID, "metadata": metadata(t.Metadata),
		"relationships": doc{"app": toOne(t.AppGUID)},
		"links": doc{
			"self":    c.link("%s", self),
			"app":     c.link("/v3/apps/%s", t.AppGUID),
			"cancel":  c.action("POST", "%s/actions/cancel", self),
			"droplet": c.link("/v3/droplets/%s", t.DropletGUID),
		},
	})
}

var listTasks = inTx(func(c *call) (*response, error) {
	return listForeseeing(c, store.Tasks, viewListedTask, nil, func(found []*cf.Task) error { return foreseeTaskUsers(c, found) })
})

// taskViewAt is how the actor sees the tasks of an app.
func taskViewAt(c *call, app *cf.App) (view[cf.Task], error) {
	place, err := c.PlaceOf(app)
	if err == nil && c.Actor.May(commandReader, place) {
		return viewTask, nil
	}
	return viewListedTask, err
}

func createTask(c *call) (*response, error) {
	if err := c.Feature("task_creation"); err != nil {
		return nil, err
	}
	var req apps.NewTask
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	t, err := apps.RunTask(c.Session, app, req)
	if err != nil {
		return nil, err
	}
	return &response{status: http.StatusAccepted, body: viewTask(c, t)}, nil
}

// showTask holds the answer to the CLI while the task is under way.
func showTask(c *call) (*response, error) {
	return hold(c, func(c *call) (*response, bool, error) {
		t, app, err := ofApp(c, store.Tasks, taskApp)
		if err != nil {
			return nil, false, err
		}
		v, err := taskViewAt(c, app)
		return &response{body: v(c, t)}, t.State == cf.TaskSucceeded || t.State == cf.TaskFailed, err
	})
}

func listAppTasks(c *call) (*response, error) {
	if err := checkQuery(c); err != nil {
		return nil, err
	}
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	v, err := taskViewAt(c, app)
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Tasks, v, matching("app_guids", app.GUID))
}

func cancelTask(c *call) (*response, error) {
	t, app, err := ofApp(c, store.Tasks, taskApp)
	if err != nil {
		return nil, err
	}
	if err := apps.CancelTask(c.Session, app, t); err != nil {
		return nil, err
	}
	return &response{status: http.StatusAccepted, body: viewTask(c, t)}, nil
}
