package apps

import (
	"slices"
	"strconv"

	"cupola/runtime/contract"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// Cloud Controller's defaults and bounds of a process (its cloud_controller.yml).
const (
	defaultMemoryMB = 1024
	defaultDiskMB   = 1024
	maxDiskMB       = 10240
	defaultLogRate  = 1 << 20 // bytes a second
)

// The bounds of what may be asked for. Cloud Controller's of a size is the same;
// its bound of instances is that too, which one machine could not even count.
const (
	maxInstances = 10_000
	maxMB        = 2147483647
)

// NewProcess is a process as Cloud Controller makes one: a web process wants
// an instance and has its port checked, others want none.
func NewProcess(app *cf.App, kind string) *cf.Process {
	p := &cf.Process{AppGUID: app.GUID, Type: kind, MemoryMB: defaultMemoryMB, DiskMB: defaultDiskMB, LogRateLimit: defaultLogRate,
		HealthCheck: cf.HealthCheck{Type: "process"}, ReadinessCheck: cf.HealthCheck{Type: "process"}}
	if kind == "web" {
		// The web process bears its app's GUID, in Cloud Controller too.
		p.GUID, p.Instances, p.HealthCheck.Type = app.GUID, 1, "port"
	}
	return p
}

// addProcesses gives an app the processes of a droplet that it lacks.
func addProcesses(c *control.Session, app *cf.App, d *cf.Droplet) error {
	have, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	byType := map[string]*cf.Process{}
	for _, p := range have {
		byType[p.Type] = p
	}
	for kind := range d.ProcessTypes {
		if byType[kind] != nil {
			continue
		}
		if _, err := AddProcess(c, app, kind); err != nil {
			return err
		}
	}
	return nil
}

// Bounds of a process and of how many an app has.
const (
	// maxCommand is Cloud Controller's limit of a command, in characters.
	maxCommand = 4096
	// maxProcesses bounds the processes of an app: a manifest's and those of two
	// droplets.
	maxProcesses = 3 * contract.MaxProcesses
)

// AddProcess adds a process to an app. While the app runs it is placed, and
// bound, like the others.
func AddProcess(c *control.Session, app *cf.App, kind string) (*cf.Process, error) {
	p := NewProcess(app, kind)
	like, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return nil, err
	}
	if len(like) >= maxProcesses {
		return nil, cf.Unprocessable("Process '%s' cannot be added: an app may have at most %d processes", kind, maxProcesses)
	}
	if app.State == cf.Started && len(like) > 0 {
		other := like[len(like)-1]
		p.Placement, p.Services, p.BindingForm = other.Placement, other.Services, other.BindingForm
	}
	for _, s := range Sidecars(app, like...) {
		if slices.Contains(s.ProcessTypes, kind) {
			p.Sidecars = append(p.Sidecars, s.Sidecar)
		}
	}
	if err := store.Processes.Insert(c.Tx, p); err != nil {
		return nil, err
	}
	return p, processEvent(c, audit.AppProcessCreate, app, p, c.Triggered(audit.Data{}))
}

// processEvent records an event of a process of an app.
func processEvent(c *control.Session, kind audit.Type, app *cf.App, p *cf.Process, data audit.Data) error {
	data["process_guid"], data["process_type"] = p.GUID, p.Type
	return c.AuditApp(kind, app, data)
}

// EndEvents records that the tasks of an app that run, and its processes, are deleted with it.
func EndEvents(c *control.Session, app *cf.App) error {
	tasks, err := store.Tasks.Matching(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "states": {string(cf.TaskRunning)}}})
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if err := taskEvent(c, audit.AppTaskCancel, app, t); err != nil {
			return err
		}
	}
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	for _, p := range processes {
		if err := processEvent(c, audit.AppProcessDelete, app, p, audit.Data{}); err != nil {
			return err
		}
	}
	return nil
}

// Process is an app's process of a type: during a deployment the newest one.
func Process(c *control.Session, app *cf.App, kind string) (*cf.Process, error) {
	return store.Processes.First(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "types": {kind}}, Desc: true})
}

// WebProcesses are an app's, oldest first.
func WebProcesses(c *control.Session, app *cf.App) ([]*cf.Process, error) {
	list, err := store.Processes.Matching(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "types": {"web"}}})
	return list, err
}

// MayChange refuses to change a process that a deployment is changing.
func MayChange(c *control.Session, p *cf.Process, app *cf.App, why string) error {
	if p.Type != "web" {
		return nil
	}
	return notDeploying(c, app, "%s", why)
}

// Command is the command a process starts with: its own, else the current
// droplet's.
func Command(c *control.Session, p *cf.Process, app *cf.App) (string, error) {
	if p.Command != "" || app.DropletGUID == "" {
		return p.Command, nil
	}
	d, err := store.Droplets.Get(c.Tx, app.DropletGUID)
	if store.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return d.ProcessTypes[p.Type], nil
}

// checkUser refuses users other than the one that apps run as; "" is that one.
// Cloud Controller lets an operator name more.
func checkUser(name string) error {
	if name == "" || name == "vcap" {
		return nil
	}
	return cf.Unprocessable("user invalid (requested user '%s' not allowed, permitted users are: 'vcap')", name)
}

// TerminateInstance records that a user terminates an instance of a process, and returns
// its index.
func TerminateInstance(c *control.Session, app *cf.App, p *cf.Process, index string) (int, error) {
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 || n >= p.Instances {
		return 0, cf.Errorf(cf.ResourceNotFound, "Instance not found")
	}
	return n, processEvent(c, audit.AppProcessTerminateInstance, app, p, audit.Data{"process_index": n})
}
