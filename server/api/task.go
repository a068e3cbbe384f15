package api

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// commandReader may see what a task runs: Cloud Controller's secrets in a
// space, which a supporter does not see.
const commandReader = authz.SpaceDeveloper | authz.AdminReadOnly

func taskApp(t *cf.Task) string { return t.AppGUID }

func viewTask(c *call, t *cf.Task) doc {
	return with(viewListedTask(c, t), doc{"command": t.Command})
}

// viewListedTask leaves the command out.
func viewListedTask(c *call, t *cf.Task) doc {
	self := "/v3/tasks/" + t.GUID
	return with(resource(t.Resource), doc{
		"sequence_id": t.SequenceID, "name": t.Name, "user": control.OrNil(t.User), "state": t.State,
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

// taskViewAt is how the actor sees the tasks of an app.
func (c *call) taskViewAt(app *cf.App) (view[cf.Task], error) {
	place, err := c.PlaceOf(app)
	if err == nil && c.Actor.May(commandReader, place) {
		return viewTask, nil
	}
	return viewListedTask, err
}

type taskRequest struct {
	Name         change.Field[string] `json:"name"`
	Command      change.Field[string] `json:"command"`
	MemoryMB     change.Field[int]    `json:"memory_in_mb"`
	DiskMB       change.Field[int]    `json:"disk_in_mb"`
	LogRateLimit change.Field[int64]  `json:"log_rate_limit_in_bytes_per_second"`
	DropletGUID  change.Field[string] `json:"droplet_guid"`
	User         change.Field[string] `json:"user"`
	Metadata     *change.Metadata     `json:"metadata"`
	Template     *struct {
		Process struct {
			GUID string `json:"guid"`
		} `json:"process"`
	} `json:"template"`
}

// maxTaskCommand bounds a task's command in characters, as Cloud Controller
// does.
const maxTaskCommand = 4096

func (r taskRequest) Validate() []string {
	return control.Must(r.Command.V != "" || r.Template != nil, "Command No command or template provided",
		len(r.Command.V) <= maxTaskCommand, fmt.Sprintf("Command must be shorter than %d characters", maxTaskCommand+1),
		r.MemoryMB.Or(1) > 0, "Memory in mb must be greater than 0",
		r.MemoryMB.V <= apps.MaxMB, fmt.Sprintf("Memory in mb must be less than or equal to %d", apps.MaxMB),
		r.DiskMB.Or(1) > 0, "Disk in mb must be greater than 0",
		r.DiskMB.V <= apps.MaxDiskMB, fmt.Sprintf("Cannot request disk_in_mb greater than %d", apps.MaxDiskMB),
		r.LogRateLimit.V >= -1, "Log rate limit in bytes per second must be greater than -2",
		!r.User.Set || r.User.Null || len(r.User.V) >= 1 && len(r.User.V) <= 255, "User must be between 1 and 255 characters")
}

func createTask(c *call) (*response, error) {
	var req taskRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	if err := c.Feature("task_creation"); err != nil {
		return nil, err
	}
	if err := services.Fit(c.Session, app, services.OfTask); err != nil {
		return nil, err
	}
	t, err := c.newTask(app, req)
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&t.Metadata); err != nil {
		return nil, err
	}
	if err := quota.Within(c.Tx, app.SpaceGUID, quota.Processes, func() error { return store.Tasks.Insert(c.Tx, t) }); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppTaskCreate, app, doc{"task_guid": t.GUID, "request": doc{"name": t.Name, "memory_in_mb": t.MemoryMB, "command": "[PRIVATE DATA HIDDEN]"}}); err != nil {
		return nil, err
	}
	return &response{status: http.StatusAccepted, body: viewTask(c, t)}, nil
}

// newTask is the task that a request wants of an app.
func (c *call) newTask(app *cf.App, req taskRequest) (*cf.Task, error) {
	like, err := c.taskTemplate(app, req)
	if err != nil {
		return nil, err
	}
	t := &cf.Task{AppGUID: app.GUID, Name: req.Name.Or(randomName()), State: cf.TaskPending, Env: app.Env,
		Command: req.Command.Or(like.Command), User: strings.ToLower(req.User.Or(like.User)),
		MemoryMB: req.MemoryMB.Or(like.MemoryMB), DiskMB: req.DiskMB.Or(like.DiskMB), LogRateLimit: req.LogRateLimit.Or(like.LogRateLimit)}
	if err := apps.CheckUser(t.User); err != nil {
		return nil, err
	}
	if t.DropletGUID, err = apps.TaskDroplet(c.Session, app, req.DropletGUID.V); err != nil {
		return nil, err
	}
	if t.Placement, err = c.Tx.PlacementOf(app.SpaceGUID); err != nil {
		return nil, err
	}
	last, _, err := store.Tasks.List(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}}, Desc: true, Page: 1, PerPage: 1})
	if err != nil {
		return nil, err
	}
	t.SequenceID = 1
	if len(last) > 0 {
		t.SequenceID = last[0].SequenceID + 1
	}
	return t, nil
}

// randomName is Cloud Controller's name for a task that was given none: eight
// hexadecimal digits.
func randomName() string {
	b := make([]byte, 4)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// taskTemplate is the process after which a task is made, with its command.
func (c *call) taskTemplate(app *cf.App, req taskRequest) (*cf.Process, error) {
	if req.Template == nil {
		return apps.NewProcess(app, "task"), nil
	}
	p, err := store.Processes.Visible(c.Tx, req.Template.Process.GUID, c.Scope)
	if err != nil {
		return nil, err
	}
	owner, err := store.Apps.Get(c.Tx, p.AppGUID)
	if err != nil {
		return nil, err
	}
	p.Command, err = apps.Command(c.Session, p, owner)
	return p, err
}

// showTask holds the answer to the CLI while the task is under way.
func showTask(c *call) (*response, error) {
	return hold(c, store.Tasks.Name(), func(c *call) (*response, bool, error) {
		t, app, err := ofApp(c, store.Tasks, taskApp)
		if err != nil {
			return nil, false, err
		}
		v, err := c.taskViewAt(app)
		return &response{body: v(c, t)}, t.State == cf.TaskSucceeded || t.State == cf.TaskFailed, err
	})
}

func listAppTasks(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	v, err := c.taskViewAt(app)
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Tasks, v, func(q *listQuery) error {
		q.Where["app_guids"] = []string{app.GUID}
		return nil
	})
}

func updateTask(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	t, _, err := ofApp(c, store.Tasks, taskApp)
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&t.Metadata); err != nil {
		return nil, err
	}
	if err := store.Tasks.Update(c.Tx, t); err != nil {
		return nil, err
	}
	return ok(viewTask(c, t))
}

// cancelTask marks a task; what runs of it is then stopped.
func cancelTask(c *call) (*response, error) {
	t, app, err := ofApp(c, store.Tasks, taskApp)
	if err != nil {
		return nil, err
	}
	if t.State == cf.TaskSucceeded || t.State == cf.TaskFailed {
		return nil, cf.Unprocessable("Task state is %s and therefore cannot be canceled", t.State)
	}
	t.State = cf.TaskCanceling
	if err := store.Tasks.Update(c.Tx, t); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppTaskCancel, app, doc{"task_guid": t.GUID}); err != nil {
		return nil, err
	}
	return &response{status: http.StatusAccepted, body: viewTask(c, t)}, nil
}
