package reconcile

import (
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
		} else if l.images.settle(key, &one.RunInfo) {
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
		w.Waits = l.images.settle("task/"+t.RunGUID, &w.Run)
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
	return loadedApps(&loader{tx: tx, api: l.api})
}

// Tasks gives what Cloud Foundry's tasks and stagings run now, by GUID.
func (l *Loop) Tasks(tx *store.Tx) (map[string]lrp.RunInfo, error) {
	r := &loader{tx: tx, api: l.api}
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
	var apps []desire.App
	for _, d := range l.world.Desired {
		a := desire.App{Desired: d}
		if p := of[desire.CFProcess(d.ProcessGUID)]; p != nil && l.apps[p.AppGUID] != nil {
			o, _, _ := l.owner(l.apps[p.AppGUID], p.Type)
			a.URIs = o.URIs
		}
		apps = append(apps, a)
	}
	return apps, nil
}
