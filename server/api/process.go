package api

import (
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/store"
	"cupola/store/cf"
)

func viewProcess(c *call, p *cf.Process) doc { return viewProcessWith(c, p, control.OrNil(p.Command)) }

// embedsInstances is what can be embedded in processes, as parseQuery has it.
const embedsInstances = "embed=process_instances"

// viewListedProcess hides the command, as Cloud Controller does in lists.
func viewListedProcess(c *call, p *cf.Process) doc {
	if p.Type == "web" && c.fromCLI() {
		c.s.listed.note(p, c.Tx.Now)
	}
	return embedInstances(c, viewProcessWith(c, p, "[PRIVATE DATA HIDDEN IN LISTS]"), p)
}

// embedInstances adds a process's instances when they are asked for.
func embedInstances(c *call, d doc, p *cf.Process) doc {
	if embeds(c) {
		d["process_instances"] = processInstances(c, p)
	}
	return d
}

// embeds reports whether the request asks for embedded instances, the only thing that
// can be embedded.
func embeds(c *call) bool { return c.Request.URL.Query().Has("embed") }

var listProcesses = inTx(func(c *call) (*response, error) {
	return listForeseeing(c, store.Processes, viewListedProcess, nil, func(found []*cf.Process) error {
		if err := foreseeProcessUsers(c, found); err != nil || !embeds(c) {
			return err
		}
		return foreseeActuals(c, found)
	}, embedsInstances)
})

func viewProcessWith(c *call, p *cf.Process, command any) doc {
	self := "/v3/processes/" + p.GUID
	return with(resource(p.Resource), doc{
		"type": p.Type, "command": command, "user": processUser(c, p), "instances": p.Instances, "memory_in_mb": p.MemoryMB, "disk_in_mb": p.DiskMB,
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

// processOf is the process that the path names: {guid} itself, or {type} of the
// app {guid}.
func processOf(c *call) (*cf.Process, *cf.App, error) {
	kind := c.param("type")
	if kind == "" {
		p, app, err := ofApp(c, store.Processes, func(p *cf.Process) string { return p.AppGUID })
		if store.IsNotFound(err) && !c.writes() && c.fromCLI() {
			return endedProcess(c, err)
		}
		return p, app, err
	}
	app, err := findApp(c)
	if err != nil {
		return nil, nil, err
	}
	p, err := apps.Process(c.Session, app, kind)
	return p, app, err
}

// endedProcess is the process of {guid} that a deployment deleted after the CLI had
// listed it, or the error that there is none.
func endedProcess(c *call, missing error) (*cf.Process, *cf.App, error) {
	p := c.s.listed.find(c.guid(), c.Tx.Now)
	if p == nil {
		return nil, nil, missing
	}
	app, err := c.App(p.AppGUID)
	if store.IsNotFound(err) {
		err = missing
	}
	return p, app, err
}

func showProcess(c *call) (*response, error) {
	if _, err := parseQuery(c, noRows{}, embedsInstances); err != nil {
		return nil, err
	}
	p, app, err := processOf(c)
	if err != nil {
		return nil, err
	}
	place, err := c.PlaceOf(app)
	if err != nil {
		return nil, err
	}
	command, err := apps.Command(c.Session, p, app)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(commandReader, place) {
		command = concealed
	}
	return ok(embedInstances(c, with(viewProcessWith(c, p, control.OrNil(command)), doc{"placement": viewPlacement(c, p)}), p))
}

func updateProcess(c *call) (*response, error) {
	p, app, err := processOf(c)
	if err != nil {
		return nil, err
	}
	var req apps.ProcessChange
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := apps.UpdateProcess(c.Session, app, p, req); err != nil {
		return nil, err
	}
	return ok(viewProcess(c, p))
}

func scaleProcess(c *call) (*response, error) {
	p, app, err := processOf(c)
	if err != nil {
		return nil, err
	}
	if err := c.Feature("app_scaling"); err != nil {
		return nil, err
	}
	var req apps.Scale
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := apps.ScaleProcess(c.Session, app, p, req); err != nil {
		return nil, err
	}
	return &response{status: 202, body: viewProcess(c, p)}, nil
}
