package api

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// holdStats is how long the stats of an app that starts are held for the CLI:
// a push sees its first instance run at once, and `cf app` is not kept long.
const holdStats = 8 * time.Second

// Who hears that an instance runs asks for its page next, sooner than the router
// may know of it: an answer to the CLI waits for the router when an instance
// began to run within justNow, for waitRouted at most.
const (
	justNow    = 5 * time.Second
	waitRouted = 2 * time.Second
)

// instances are the rows of a process's instances by index; one that has no
// row yet, or none any longer, is missing.
func instances(c *call, p *cf.Process, app *cf.App) (map[int]*lrp.Actual, error) {
	rows, err := actuals(c, desire.ProcessGUID(p, app))
	byIndex := map[int]*lrp.Actual{}
	for _, r := range rows {
		if have := byIndex[r.Index]; have == nil || have.Stopping {
			byIndex[r.Index] = r
		}
	}
	return byIndex, err
}

// actuals are the rows of a Desired, which may have been foreseen.
func actuals(c *call, processGUID string) ([]*lrp.Actual, error) {
	if rows, ok := c.recalled[store.ActualLRPs.Name()+" "+processGUID]; ok {
		return rows.([]*lrp.Actual), nil
	}
	return store.ActualLRPs.By(c.Tx, "process_guids", processGUID)
}

// foreseeActuals gets what the embedded instances of processes are made of, all
// at once.
func foreseeActuals(c *call, processes []*cf.Process) error {
	if err := foresee(c, store.Apps, func(a *cf.App) string { return a.GUID }, control.GUIDs(processes, func(p *cf.Process) string { return p.AppGUID })); err != nil {
		return err
	}
	of := map[string][]*lrp.Actual{}
	for _, p := range processes {
		app, err := recall(c, store.Apps, p.AppGUID)
		if err != nil {
			return err
		}
		of[desire.ProcessGUID(p, app)] = nil
	}
	if err := foreseeSleeps(c, processes); err != nil {
		return err
	}
	rows, err := store.ActualLRPs.By(c.Tx, "process_guids", slices.Collect(maps.Keys(of))...)
	for _, r := range rows {
		of[r.ProcessGUID] = append(of[r.ProcessGUID], r)
	}
	for guid, rows := range of {
		c.remember(store.ActualLRPs.Name(), guid, rows)
	}
	return err
}

// leaving are the instances of a process that are on their way out: those of its
// older revisions, and those of indices it has no longer.
func leaving(c *call, p *cf.Process, app *cf.App) ([]doc, error) {
	rows, err := store.ActualLRPs.By(c.Tx, "of_processes", p.GUID)
	if err != nil {
		return nil, err
	}
	current, list := desire.ProcessGUID(p, app), []doc{}
	for _, a := range rows {
		old := a.ProcessGUID != current || a.Index >= p.Instances || app.State != cf.Started
		if !old || a.Domain != lrp.DomainApps || a.InstanceGUID == "" {
			continue
		}
		list = append(list, with(viewStats(c, p, a.Index, a, nil), doc{"state": "STOPPING", "process_guid": a.ProcessGUID}))
	}
	return list, nil
}

// instanceState is Cloud Controller's word for a row's state (its
// LrpStateTranslator); an index without a row is DOWN.
func instanceState(a *lrp.Actual) string {
	switch {
	case a == nil:
		return "DOWN"
	case a.Stopping:
		return "STOPPING"
	case a.State == lrp.Running:
		return "RUNNING"
	case a.State == lrp.Crashed:
		return "CRASHED"
	case a.State == lrp.Unclaimed && a.PlacementError != "":
		return "DOWN"
	}
	return "STARTING"
}

// showStats holds the answer to the CLI until an instance of a starting app
// runs, and requests reach it, or crashes.
func showStats(c *call) (*response, error) {
	looks, routed := 0, false
	res, err := holdUntil(c, time.Now().Add(holdStats), func(c *call) (*response, bool, error) {
		p, app, err := processOf(c)
		if err != nil {
			return nil, false, err
		}
		byIndex, err := instances(c, p, app)
		if err != nil {
			return nil, false, err
		}
		asleep, err := sleeps(c, p, app)
		if err != nil {
			return nil, false, err
		}
		bound, err := apps.BoundNow(c.Session, app, p)
		if err != nil {
			return nil, false, err
		}
		looks++
		pending, resources := app.State == cf.Started && p.Instances > 0 && !asleep, []doc{}
		for i := range p.Instances {
			a := byIndex[i]
			pending = pending && comes(p, a)
			routed = routed || !asleep && a != nil && a.Routable() && (looks > 1 || c.Tx.Now.Sub(a.Since) < justNow)
			resources = append(resources, inSleep(asleep, viewStats(c, p, i, a, &bound)))
		}
		stopping, err := leaving(c, p, app)
		return &response{body: doc{"resources": resources, "stopping": stopping}}, !pending, err
	})
	if err == nil && routed && c.fromCLI() {
		c.waitRouted()
	}
	return res, err
}

// waitRouted waits until the router knows what the rows say.
func (c *call) waitRouted() {
	if c.s.Routed == nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context(), waitRouted)
	defer cancel()
	c.s.Routed(ctx)
}

// comes reports whether an instance is about to run: its row is not there yet, or
// it starts, or runs but has no route yet, which without a readiness check is a
// matter of a moment.
func comes(p *cf.Process, a *lrp.Actual) bool {
	switch instanceState(a) {
	case "DOWN":
		return a == nil
	case "RUNNING":
		return !a.Ready && p.ReadinessCheck.Type != "http" && p.ReadinessCheck.Type != "port"
	}
	return instanceState(a) == "STARTING"
}

// viewStats is what the stats say of an instance; of one that is on its way out
// not which bindings it has: b is nil then.
func viewStats(c *call, p *cf.Process, index int, a *lrp.Actual, b *apps.Bound) doc {
	state := instanceState(a)
	d := doc{"type": p.Type, "index": index, "state": state, "routable": nil, "uptime": 0, "isolation_segment": nil, "details": nil}
	if a == nil {
		return d
	}
	details := cmp.Or(a.PlacementError, waitOf(c, a, state))
	if details == "" {
		details = crashOf(c, p, a, state)
	}
	d["details"] = control.OrNil(details)
	d = placedStats(c, p, d)
	if state != "RUNNING" {
		if state == "DOWN" {
			return d
		}
		return with(d, quotas(c, p, a, lrp.Stats{}))
	}
	s, _ := c.s.Stats(a.InstanceGUID)
	d["routable"] = a.Ready
	if b != nil {
		showBindings(c, b, a, s, d)
	}
	d["uptime"] = max(0, int64(time.Since(a.Since).Seconds()))
	return with(d, quotas(c, p, a, s))
}

// waitOf says why an instance that was placed does not start yet, where its cell knows.
func waitOf(c *call, a *lrp.Actual, state string) string {
	if state != "STARTING" || a.InstanceGUID == "" {
		return ""
	}
	if s, _ := c.s.Stats(a.InstanceGUID); s.Waits != "" {
		return lrp.WaitsPrefix + s.Waits
	}
	return ""
}

// crashOf says why an instance crashed that waits for its next start, or starts:
// clients show the details at the end of a push. Cloud Controller has none then.
func crashOf(c *call, p *cf.Process, a *lrp.Actual, state string) string {
	if state != "CRASHED" && state != "STARTING" || a.CrashReason == "" {
		return ""
	}
	const kind = "why-crashed"
	why, ok := c.recalled[kind+" "+p.GUID].(func(*lrp.Actual) string)
	if !ok {
		why = c.s.WhyCrashed(p)
		c.remember(kind, p.GUID, why)
	}
	return lrp.Truncate(why(a))
}

// quotas is what of an instance's stats has a bound, with the use of it.
func quotas(c *call, p *cf.Process, a *lrp.Actual, s lrp.Stats) doc {
	ports := []doc{}
	for _, m := range a.PortMappings() {
		ports = append(ports, doc{"external": m.Port, "internal": m.Port, "external_tls_proxy_port": tlsPortOrNil(m.ExternalTLSPort()), "internal_tls_proxy_port": tlsPortOrNil(m.TLSPort)})
	}
	return doc{
		"instance_guid": a.InstanceGUID, "host": a.Address, "instance_internal_ip": a.Address, "instance_ports": ports,
		"mem_quota": int64(p.MemoryMB) << 20, "disk_quota": int64(p.DiskMB) << 20, "log_rate_limit": p.LogRateLimit, "fds_quota": 16384,
		"usage": doc{"time": c.Tx.Now.Format(time.RFC3339Nano), "cpu": s.CPUPercent / 100, "cpu_entitlement": s.Entitlement,
			"mem": s.MemoryBytes, "disk": s.DiskBytes, "log_rate": s.LogRate},
	}
}

// tlsPortOrNil is null where there is no port (CC: process_stats_presenter.rb).
func tlsPortOrNil(port uint16) any {
	if port == 0 {
		return nil
	}
	return port
}

// processInstances is the short form of the stats, for lists.
func processInstances(c *call, p *cf.Process) []doc {
	out := []doc{}
	app, err := recall(c, store.Apps, p.AppGUID)
	if err != nil {
		return out
	}
	byIndex, err := instances(c, p, app)
	if err != nil {
		return out
	}
	asleep, err := sleeps(c, p, app)
	if err != nil {
		return out
	}
	for i := range p.Instances {
		var since any // null of an instance that there is not (CC: instances_reporter.rb)
		if a := byIndex[i]; a != nil {
			since = int64(time.Since(a.Since).Seconds())
		}
		out = append(out, inSleep(asleep, doc{"index": i, "state": instanceState(byIndex[i]), "since": since}))
	}
	return out
}

func showProcessInstances(c *call) (*response, error) {
	p, _, err := processOf(c)
	if err != nil {
		return nil, err
	}
	return ok(doc{"resources": processInstances(c, p), "links": doc{
		"self": c.link("/v3/processes/%s/process_instances", p.GUID), "process": c.link("/v3/processes/%s", p.GUID)}})
}
