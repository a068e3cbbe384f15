package api

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cupola/runtime/contract"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/quota"
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

// The bounds of what a request may ask for. Cloud Controller's of a size is the
// same; its bound of instances is that too, which one machine could not even
// count.
const (
	maxInstances = 10_000
	maxMB        = 2147483647
)

// newProcess is a process as Cloud Controller makes one: a web process wants
// an instance and has its port checked, others want none.
func newProcess(app *cf.App, kind string) *cf.Process {
	p := &cf.Process{AppGUID: app.GUID, Type: kind, MemoryMB: defaultMemoryMB, DiskMB: defaultDiskMB, LogRateLimit: defaultLogRate,
		HealthCheck: cf.HealthCheck{Type: "process"}, ReadinessCheck: cf.HealthCheck{Type: "process"}}
	if kind == "web" {
		// The web process bears its app's GUID, in Cloud Controller too.
		p.GUID, p.Instances, p.HealthCheck.Type = app.GUID, 1, "port"
	}
	return p
}

// addProcesses gives an app the processes of a droplet that it lacks, and the
// sidecars the droplet brings.
func (c *call) addProcesses(app *cf.App, d *cf.Droplet) error {
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
		if _, err := c.addProcess(app, kind); err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxCommand is Cloud Controller's limit of a command, in characters.
	maxCommand = 4096
	// maxProcesses bounds the processes of an app: a manifest's and those of two
	// droplets.
	maxProcesses = 3 * contract.MaxProcesses
)

// addProcess adds a process to an app. While the app runs it is placed like the
// others.
func (c *call) addProcess(app *cf.App, kind string) (*cf.Process, error) {
	p := newProcess(app, kind)
	like, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return nil, err
	}
	if len(like) >= maxProcesses {
		return nil, cf.Unprocessable("Process '%s' cannot be added: an app may have at most %d processes", kind, maxProcesses)
	}
	if app.State == cf.Started && len(like) > 0 {
		p.Placement = like[len(like)-1].Placement
	}
	return p, store.Processes.Insert(c.Tx, p)
}

func viewProcess(c *call, p *cf.Process) doc { return viewProcessWith(c, p, control.OrNil(p.Command)) }

// embedsInstances is what can be embedded in processes, as parseQuery has it.
const embedsInstances = "embed=process_instances"

// viewListedProcess hides the command, as Cloud Controller does in lists.
func viewListedProcess(c *call, p *cf.Process) doc {
	return c.embedInstances(viewProcessWith(c, p, "[PRIVATE DATA HIDDEN IN LISTS]"), p)
}

// embedInstances adds a process's instances when they are asked for.
func (c *call) embedInstances(d doc, p *cf.Process) doc {
	if c.embeds() {
		d["process_instances"] = c.processInstances(p)
	}
	return d
}

// embeds tells whether anything is to be embedded: there is one thing that can be.
func (c *call) embeds() bool { return c.Request.URL.Query().Has("embed") }

var listProcesses = inTx(func(c *call) (*response, error) {
	return listForeseeing(c, store.Processes, viewListedProcess, nil, func(found []*cf.Process) error {
		if !c.embeds() {
			return nil
		}
		return c.foreseeActuals(found)
	}, embedsInstances)
})

func viewProcessWith(c *call, p *cf.Process, command any) doc {
	self := "/v3/processes/" + p.GUID
	return with(resource(p.Resource), doc{
		"type": p.Type, "command": command, "user": control.OrNil(p.User), "instances": p.Instances, "memory_in_mb": p.MemoryMB, "disk_in_mb": p.DiskMB,
		"log_rate_limit_in_bytes_per_second": p.LogRateLimit,
		"health_check":                       viewHealthCheck(p.HealthCheck, true),
		"readiness_health_check":             viewHealthCheck(p.ReadinessCheck, false),
		"version":                            "", "metadata": metadata(p.Metadata),
		"relationships": doc{"app": toOne(p.AppGUID), "revision": revisionOf(p)},
		"links": doc{
			"self":              c.link("%s", self),
			"scale":             c.action("POST", "%s/actions/scale", self),
			"app":               c.link("/v3/apps/%s", p.AppGUID),
			"space":             c.link("/v3/apps/%s?include=space", p.AppGUID),
			"stats":             c.link("%s/stats", self),
			"process_instances": c.link("%s/process_instances", self),
		},
	})
}

func revisionOf(p *cf.Process) any {
	if p.RevisionGUID == "" {
		return nil
	}
	return toOne(p.RevisionGUID)
}

// viewHealthCheck shows what was set; unset numbers are null for a liveness
// check and absent otherwise.
func viewHealthCheck(h cf.HealthCheck, liveness bool) doc {
	data := doc{"invocation_timeout": zeroNil(h.InvocationTimeout), "interval": zeroNil(h.Interval)}
	if liveness {
		data["timeout"] = zeroNil(h.Timeout)
	}
	if h.Type == "http" {
		data["endpoint"] = h.Endpoint
	}
	return doc{"type": h.Type, "data": data}
}

func zeroNil(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// process is the process that the path names: {guid} itself, or {type} of the
// app {guid}.
func (c *call) process() (*cf.Process, *cf.App, error) {
	kind := c.param("type")
	if kind == "" {
		return ofApp(c, store.Processes, func(p *cf.Process) string { return p.AppGUID })
	}
	app, err := c.app()
	if err != nil {
		return nil, nil, err
	}
	p, err := c.processOf(app, kind)
	return p, app, err
}

// processOf is an app's process of a type: during a deployment the newest one.
func (c *call) processOf(app *cf.App, kind string) (*cf.Process, error) {
	return store.Processes.First(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "types": {kind}}, Desc: true})
}

// webProcesses are an app's, oldest first.
func (c *call) webProcesses(app *cf.App) ([]*cf.Process, error) {
	list, _, err := store.Processes.List(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "types": {"web"}}})
	return list, err
}

// mayChange refuses to change a process that a deployment is changing.
func (c *call) mayChange(p *cf.Process, app *cf.App, why string) error {
	if p.Type != "web" {
		return nil
	}
	return c.notDeploying(app, "%s", why)
}

func showProcess(c *call) (*response, error) {
	if _, err := parseQuery(c.Request.URL.Query(), noRows{}, embedsInstances); err != nil {
		return nil, err
	}
	p, app, err := c.process()
	if err != nil {
		return nil, err
	}
	place, err := c.PlaceOf(app)
	if err != nil {
		return nil, err
	}
	command, err := c.commandOf(p, app)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(commandReader, place) {
		command = "[PRIVATE DATA HIDDEN]"
	}
	return ok(c.embedInstances(with(viewProcessWith(c, p, control.OrNil(command)), doc{"placement": c.viewPlacement(p)}), p))
}

// commandOf is the command a process starts with: its own, else the current
// droplet's.
func (c *call) commandOf(p *cf.Process, app *cf.App) (string, error) {
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

type processRequest struct {
	Command        change.Field[string] `json:"command"`
	User           change.Field[string] `json:"user"`
	HealthCheck    *healthCheckRequest  `json:"health_check"`
	ReadinessCheck *healthCheckRequest  `json:"readiness_health_check"`
	Metadata       *change.Metadata     `json:"metadata"`
}

type healthCheckRequest struct {
	Type change.Field[string] `json:"type"`
	Data struct {
		Endpoint          change.Field[string] `json:"endpoint"`
		Timeout           change.Field[int]    `json:"timeout"`
		InvocationTimeout change.Field[int]    `json:"invocation_timeout"`
		Interval          change.Field[int]    `json:"interval"`
	} `json:"data"`
}

// apply changes h; what names it in messages.
func (r *healthCheckRequest) apply(h *cf.HealthCheck, what string) error {
	if r == nil {
		return nil
	}
	h.Type = r.Type.Or(h.Type)
	h.Timeout = r.Data.Timeout.Or(keep(r.Data.Timeout, h.Timeout))
	h.InvocationTimeout = r.Data.InvocationTimeout.Or(keep(r.Data.InvocationTimeout, h.InvocationTimeout))
	h.Interval = r.Data.Interval.Or(keep(r.Data.Interval, h.Interval))
	h.Endpoint = r.Data.Endpoint.Or(h.Endpoint)
	if h.Type == "http" && h.Endpoint == "" {
		h.Endpoint = "/"
	}
	if h.Type != "http" && r.Data.Endpoint.Set && !r.Data.Endpoint.Null {
		return cf.Unprocessable("%s type must be \"http\" to set a health check HTTP endpoint.", what)
	}
	if h.Type != "http" {
		h.Endpoint = ""
	}
	return control.Invalid(control.Must(cf.IsCheckType(h.Type), what+cf.CheckTypeMessage,
		h.Timeout >= 0, what+" timeout must be greater than or equal to 1",
		h.InvocationTimeout >= 0, what+" invocation timeout must be greater than or equal to 1",
		h.Interval >= 0, what+" interval must be greater than or equal to 1",
		h.Endpoint == "" || h.Endpoint[0] == '/', what+" endpoint must be a valid URI path"))
}

// keep is the value that an absent field leaves: a null one resets it.
func keep(o change.Field[int], was int) int {
	if o.Null {
		return 0
	}
	return was
}

func updateProcess(c *call) (*response, error) {
	var req processRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	p, app, err := c.process()
	if err != nil {
		return nil, err
	}
	if err := c.mayChange(p, app, noUpdate); err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(req.Command.V) > maxCommand {
		return nil, cf.Unprocessable("Command must be between 1 and %d characters", maxCommand)
	}
	if req.Command.Set {
		p.Command = req.Command.V
	}
	if req.User.Set {
		p.User = strings.ToLower(req.User.V)
	}
	if err := checkUser(p.User); err != nil {
		return nil, err
	}
	if err := req.HealthCheck.apply(&p.HealthCheck, "Health check"); err != nil {
		return nil, err
	}
	if err := req.ReadinessCheck.apply(&p.ReadinessCheck, "Readiness health check"); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return nil, err
	}
	if err := store.Processes.Update(c.Tx, p); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppProcessUpdate, app, doc{"process_guid": p.GUID, "process_type": p.Type}); err != nil {
		return nil, err
	}
	return ok(viewProcess(c, p))
}

// checkUser refuses users other than the one that apps run as; "" is that one.
// Cloud Controller lets an operator name more.
func checkUser(name string) error {
	if name == "" || name == "vcap" {
		return nil
	}
	return cf.Unprocessable("user invalid (requested user '%s' not allowed, permitted users are: 'vcap')", name)
}

type scaleRequest struct {
	Instances    change.Field[int]   `json:"instances"`
	MemoryMB     change.Field[int]   `json:"memory_in_mb"`
	DiskMB       change.Field[int]   `json:"disk_in_mb"`
	LogRateLimit change.Field[int64] `json:"log_rate_limit_in_bytes_per_second"`
}

func (r scaleRequest) Validate() []string {
	return control.Must(!r.Instances.Set || r.Instances.V >= 0, "Instances must be greater than or equal to 0",
		r.Instances.V <= maxInstances, fmt.Sprintf("Instances must be less than or equal to %d", maxInstances),
		!r.MemoryMB.Set || r.MemoryMB.V > 0, "Memory in mb must be greater than 0",
		r.MemoryMB.V <= maxMB, fmt.Sprintf("Memory in mb must be less than or equal to %d", maxMB),
		!r.DiskMB.Set || r.DiskMB.V > 0, "Disk in mb must be greater than 0",
		!r.LogRateLimit.Set || r.LogRateLimit.V >= -1, "Log rate limit in bytes per second must be greater than or equal to -1")
}

func (r scaleRequest) apply(p *cf.Process) error {
	if err := control.Invalid(r.Validate()); err != nil {
		return err
	}
	p.Instances, p.MemoryMB, p.DiskMB = r.Instances.Or(p.Instances), r.MemoryMB.Or(p.MemoryMB), r.DiskMB.Or(p.DiskMB)
	p.LogRateLimit = r.LogRateLimit.Or(p.LogRateLimit)
	if p.DiskMB > maxDiskMB {
		return cf.Unprocessable("disk_quota too much disk requested (requested %d MB - must be less than %d MB)", p.DiskMB, maxDiskMB)
	}
	return nil
}

func scaleProcess(c *call) (*response, error) {
	var req scaleRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	p, app, err := c.process()
	if err != nil {
		return nil, err
	}
	if err := c.Feature("app_scaling"); err != nil {
		return nil, err
	}
	if err := c.mayChange(p, app, noScale); err != nil {
		return nil, err
	}
	if err := req.apply(p); err != nil {
		return nil, err
	}
	if err := sidecarFaults(p); err != nil {
		return nil, cf.Unprocessable("The requested memory allocation is not large enough to run all of your sidecar processes")
	}
	if err := quota.Within(c.Tx, app.SpaceGUID, quota.Processes, func() error { return store.Processes.Update(c.Tx, p) }); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppProcessScale, app, doc{"process_guid": p.GUID, "process_type": p.Type,
		"request": doc{"instances": p.Instances, "memory_in_mb": p.MemoryMB, "disk_in_mb": p.DiskMB}}); err != nil {
		return nil, err
	}
	return &response{status: 202, body: viewProcess(c, p)}, nil
}

func listAppProcesses(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Processes, viewListedProcess, func(q *listQuery) error {
		q.Where["app_guids"] = []string{app.GUID}
		return nil
	}, embedsInstances)
}
