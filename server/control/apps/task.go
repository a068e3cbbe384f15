package apps

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"cupola/runtime/lrp"
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// NewTask is a task to be made.
type NewTask struct {
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

// Validate lists what is wrong with a request alone.
func (r NewTask) Validate() []string {
	return control.Must(r.MemoryMB.Or(1) > 0, "Memory in mb must be greater than 0",
		r.MemoryMB.V <= maxMB, fmt.Sprintf("Memory in mb must be less than or equal to %d", maxMB),
		r.DiskMB.Or(1) > 0, "Disk in mb must be greater than 0",
		r.DiskMB.V <= maxDiskMB, fmt.Sprintf("Cannot request disk_in_mb greater than %d", maxDiskMB),
		r.LogRateLimit.V >= -1, "Log rate limit in bytes per second must be greater than -2",
		!r.User.Set || r.User.Null || len(r.User.V) >= 1 && len(r.User.V) <= 255, "User must be between 1 and 255 characters")
}

// RunTask makes a task of an app, which the scheduler runs.
func RunTask(c *control.Session, app *cf.App, req NewTask) (*cf.Task, error) {
	if err := services.Fit(c, app, services.OfTask); err != nil {
		return nil, err
	}
	t, err := newTask(c, app, req)
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&t.Metadata); err != nil {
		return nil, err
	}
	return t, run(c, app, t)
}

// run adds a task within the quotas and gives it to the scheduler.
func run(c *control.Session, app *cf.App, t *cf.Task) error {
	if err := quota.Within(c, app.SpaceGUID, quota.Processes, func() error { return store.Tasks.Insert(c.Tx, t) }); err != nil {
		return err
	}
	if err := submit(c, t); err != nil {
		return err
	}
	return taskEvent(c, audit.AppTaskCreate, app, t)
}

// submit gives a task to the scheduler. From then on it is RUNNING, wherever it waits
// (CC: TaskCreate.submit_task).
func submit(c *control.Session, t *cf.Task) error {
	task := lrp.Task{GUID: t.GUID, Domain: lrp.DomainTasks, State: lrp.TaskPending, CreatedAt: c.Tx.Now, UpdatedAt: c.Tx.Now}
	if err := store.LRPTasks.Insert(c.Tx, task); err != nil {
		return err
	}
	t.State = cf.TaskRunning
	return store.Tasks.Update(c.Tx, t)
}

// taskEvent records an event of a task of an app.
func taskEvent(c *control.Session, kind audit.Type, app *cf.App, t *cf.Task) error {
	return c.AuditApp(kind, app, c.Request(audit.Data{"name": t.Name, "memory_in_mb": t.MemoryMB, "command": audit.Hidden}, "task_guid", t.GUID))
}

// newTask is the task that a request wants of an app.
func newTask(c *control.Session, app *cf.App, req NewTask) (*cf.Task, error) {
	like, err := taskTemplate(c, app, req)
	if err != nil {
		return nil, err
	}
	t := &cf.Task{AppGUID: app.GUID, Name: taskName(req), State: cf.TaskPending, Env: app.Env,
		Command: req.Command.Or(like.Command), User: strings.ToLower(req.User.Or(like.User)),
		MemoryMB: req.MemoryMB.Or(like.MemoryMB), DiskMB: req.DiskMB.Or(like.DiskMB), LogRateLimit: req.LogRateLimit.Or(like.LogRateLimit)}
	if t.DropletGUID, err = taskDroplet(c, app, req.DropletGUID.V); err != nil {
		return nil, err
	}
	if t.Placement, err = c.Tx.PlacementOf(app); err != nil {
		return nil, err
	}
	last, err := store.Tasks.Matching(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}}, Desc: true, Page: 1, PerPage: 1})
	if err != nil {
		return nil, err
	}
	t.SequenceID = 1
	if len(last) > 0 {
		t.SequenceID = last[0].SequenceID + 1
	}
	return t, taskFaults(t)
}

// taskFaults are in the words of Cloud Controller's model (app/models/runtime/task_model.rb).
func taskFaults(t *cf.Task) error {
	printable := t.Name != "" && !strings.ContainsFunc(t.Name, func(r rune) bool { return !unicode.IsPrint(r) })
	err := control.Invalid(control.Must(printable, "name format", strings.TrimSpace(t.Name) != "", "name presence",
		strings.TrimSpace(t.Command) != "", "command presence",
		utf8.RuneCountInString(t.Command) <= maxTaskCommand, fmt.Sprintf("command must be shorter than %d characters", maxTaskCommand+1)))
	return control.OrElse(err, checkUser(t.User))
}

// taskName is the name that a request gives a task, else a random one.
func taskName(req NewTask) string {
	if req.Name.Set {
		return req.Name.V
	}
	return randomName()
}

// randomName is Cloud Controller's name for a task that was given none: eight
// hexadecimal digits.
func randomName() string {
	b := make([]byte, 4)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// taskTemplate is the process after which a task is made, with its command, which the
// actor must be allowed to see: the task shows it.
func taskTemplate(c *control.Session, app *cf.App, req NewTask) (*cf.Process, error) {
	if req.Template == nil {
		return NewProcess(app, "task"), nil
	}
	p, err := store.Processes.Visible(c.Tx, req.Template.Process.GUID, c.Scope)
	if err != nil {
		return nil, err
	}
	owner, err := store.Apps.Get(c.Tx, p.AppGUID)
	if err != nil {
		return nil, err
	}
	place, err := c.PlaceOf(owner)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(authz.SpaceDeveloper|authz.AdminReadOnly, place) {
		return nil, cf.Errorf(cf.ResourceNotFound, "Process not found")
	}
	p.Command, err = Command(c, p, owner)
	return p, err
}

// CancelTask marks a task; what runs of it is then stopped.
func CancelTask(c *control.Session, app *cf.App, t *cf.Task) error {
	if t.State == cf.TaskSucceeded || t.State == cf.TaskFailed {
		return cf.Unprocessable("Task state is %s and therefore cannot be canceled", t.State)
	}
	t.State = cf.TaskCanceling
	if err := store.Tasks.Update(c.Tx, t); err != nil {
		return err
	}
	return taskEvent(c, audit.AppTaskCancel, app, t)
}

// taskDroplet is the droplet that a task runs: one of the app, or "" for its current one.
func taskDroplet(c *control.Session, app *cf.App, guid string) (string, error) {
	if guid == "" {
		guid = app.DropletGUID
	}
	if guid == "" {
		return "", cf.Unprocessable("Task must have a droplet. Specify droplet or assign current droplet to app.")
	}
	d, err := store.Droplets.Get(c.Tx, guid)
	if err == nil && d.AppGUID != app.GUID {
		err = cf.Errorf(cf.ResourceNotFound, "Droplet not found")
	}
	return guid, err
}
