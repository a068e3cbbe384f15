package reconcile

import (
	"cmp"
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// loadBBS reads what clients of the BBS asked for.
func (l *loader) loadBBS() error {
	wanted, err := l.bbs.Running(l.tx)
	if err != nil {
		return err
	}
	l.world.Waits = map[string]bool{}
	placed := l.placed()
	for _, d := range wanted {
		one := d.LRP
		key := "lrp/" + one.ProcessGUID + "/" + d.Message.GetModificationTag().GetEpoch()
		if placed[one.ProcessGUID] >= one.Instances {
			l.images.still(key)
		} else if l.images.resolve(key, &one.RunInfo) {
			l.world.Waits[one.ProcessGUID] = true
		}
		l.world.Desired = append(l.world.Desired, one)
	}
	tasks, err := store.BBSTasks.By(l.tx, "states", string(lrp.TaskPending), string(lrp.TaskRunning))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		run, err := bbsrows.Run(t)
		if err != nil {
			if err := store.BBSTasks.LeaveOut(l.tx, t, t.GUID, err); err != nil {
				return err
			}
			continue
		}
		w := Work{GUID: t.RunGUID, Domain: t.Domain, Run: run, Begun: t.State == lrp.TaskRunning}
		w.Waits = l.images.resolve("task/"+t.RunGUID, &w.Run)
		l.world.Work = append(l.world.Work, w)
	}
	return nil
}

// placed counts the instances that want no cell now, by process GUID.
func (l *loader) placed() map[string]int {
	n, has := map[string]int{}, map[string]bool{}
	for _, cell := range l.world.Cells {
		for _, c := range cell.Containers {
			has[c.GUID] = true
		}
	}
	for _, a := range l.world.Actuals {
		at, ever := restartAt(a)
		waits := a.State == lrp.Crashed && (!ever || at.After(l.world.Now))
		if waits || has[a.InstanceGUID] {
			n[a.ProcessGUID]++
		}
	}
	return n
}

// stale are the domains that are not fresh: their clients may not have desired
// everything yet, so nothing of them is stopped.
func (l *loader) stale() error {
	fresh, err := store.BBSDomains.Fresh(l.tx)
	if err != nil {
		return err
	}
	l.world.Stale = map[string]bool{}
	for _, a := range l.world.Actuals {
		if !lrp.Derived(a.Domain) && !slices.Contains(fresh, a.Domain) {
			l.world.Stale[a.Domain] = true
		}
	}
	return nil
}

// Apps gives what the apps of Cloud Foundry desire now.
func (l *Loop) Apps(tx *store.Tx) ([]desire.App, error) {
	return loadedApps(l.loader(tx))
}

// Tasks gives what Cloud Foundry's tasks and stagings run now, by GUID.
func (l *Loop) Tasks(tx *store.Tx) (map[string]lrp.RunInfo, error) {
	r := l.loader(tx)
	if err := r.do(r.loadPlatform, r.loadOwners, r.loadApps, r.loadRoutes, r.workOfBuilds, r.workOfTasks); err != nil {
		return nil, err
	}
	all := map[string]lrp.RunInfo{}
	for _, w := range r.world.Work {
		all[w.GUID] = w.Run
	}
	return all, nil
}

func loadedApps(l *loader) ([]desire.App, error) {
	if err := l.do(l.loadPlatform, l.loadApps, l.loadRoutes, l.loadProcesses); err != nil {
		return nil, err
	}
	var guids []string
	for _, d := range l.world.Desired {
		guids = append(guids, desire.CFProcess(d.ProcessGUID))
	}
	processes, err := store.Processes.By(l.tx, "guids", guids...)
	if err != nil {
		return nil, err
	}
	of := index(processes, func(p *cf.Process) string { return p.GUID })
	services, sources, err := l.routeParts()
	if err != nil {
		return nil, err
	}
	var apps []desire.App
	for _, d := range l.world.Desired {
		a := desire.App{Desired: d}
		if p := of[desire.CFProcess(d.ProcessGUID)]; p != nil {
			a.Segment = p.Placement.Segment
			a.Routes = l.appRoutes(p, services, sources)
		}
		apps = append(apps, a)
	}
	return apps, nil
}

// routeParts reads the URLs of route services and the sources of route policies, by the
// GUIDs of their routes.
func (l *loader) routeParts() (services map[string]string, sources map[string][]string, err error) {
	bindings, err := store.RouteBindings.All(l.tx)
	if err != nil {
		return nil, nil, err
	}
	services, sources = map[string]string{}, map[string][]string{}
	for _, b := range bindings {
		services[b.RouteGUID] = b.RouteServiceURL
	}
	policies, err := store.RoutePolicies.All(l.tx)
	for _, p := range policies {
		sources[p.RouteGUID] = append(sources[p.RouteGUID], p.Source)
	}
	return services, sources, err
}

// appRoutes are the routes that lead to a process: one for each destination, as Cloud
// Controller has one for each route mapping.
func (l *loader) appRoutes(p *cf.Process, services map[string]string, sources map[string][]string) (all []desire.AppRoute) {
	for _, r := range l.routes[p.AppGUID] {
		d := l.domains[r.DomainGUID]
		for _, to := range r.Destinations {
			if d == nil || to.AppGUID != p.AppGUID || desire.ProcessType(to) != p.Type {
				continue
			}
			all = append(all, desire.AppRoute{Route: r, Domain: d, ToPort: uint16(to.Port), Protocol: cmp.Or(to.Protocol, "http1"),
				ServiceURL: services[r.GUID], Sources: sources[r.GUID]})
		}
	}
	return all
}
