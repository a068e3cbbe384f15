package sleep

import (
	"cmp"
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// world is the apps that may sleep, or do, by GUID.
type world map[string]*app

// load reads the world. defaults are for apps without labels.
func load(tx *store.Tx, defaults cf.SleepTimes) (world, error) {
	w := world{}
	sleeps, err := store.Sleeps.All(tx)
	if err != nil {
		return nil, err
	}
	for _, s := range sleeps {
		w.at(s.AppGUID).sleeps = append(w.at(s.AppGUID).sleeps, s)
	}
	if err := w.loadApps(tx, defaults); err != nil {
		return nil, err
	}
	guids := w.guids()
	if len(guids) == 0 {
		return w, nil
	}
	processes, err := store.Processes.By(tx, "app_guids", guids...)
	if err != nil {
		return nil, err
	}
	for _, p := range processes {
		if p.Instances > 0 {
			w[p.AppGUID].processes = append(w[p.AppGUID].processes, p)
		}
	}
	if err := w.loadInstances(tx); err != nil {
		return nil, err
	}
	return w, w.loadBusy(tx)
}

func (w world) at(guid string) *app {
	if w[guid] == nil {
		w[guid] = &app{}
	}
	return w[guid]
}

func (w world) guids() (all []string) {
	for guid := range w {
		all = append(all, guid)
	}
	slices.Sort(all)
	return all
}

// loadApps reads the apps that sleep, and those that are to.
func (w world) loadApps(tx *store.Tx, defaults cf.SleepTimes) error {
	asleep, err := store.Apps.By(tx, "guids", w.guids()...)
	if err != nil {
		return err
	}
	where := map[string][]string{"states": {string(cf.Started)}}
	if defaults.After == 0 {
		where["sleeping_after"] = nil
	}
	may, err := store.Apps.Where(tx, where)
	if err != nil {
		return err
	}
	for _, a := range slices.Concat(asleep, may) {
		if of := defaults.Of(a.Labels); of.After > 0 || w[a.GUID] != nil {
			at := w.at(a.GUID)
			at.App, at.times = a, of
		}
	}
	return nil
}

func (w world) loadInstances(tx *store.Tx) error {
	var guids []string
	of := map[string]*app{}
	for _, a := range w {
		for _, p := range a.processes {
			guids, of[p.GUID] = append(guids, p.GUID), a
		}
	}
	rows, err := store.ActualLRPs.By(tx, "of_processes", guids...)
	for _, i := range rows {
		if a := of[desire.CFProcess(i.ProcessGUID)]; a != nil && i.Domain == lrp.DomainApps {
			a.instances = append(a.instances, i)
		}
	}
	return err
}

// loadBusy finds what keeps apps awake besides requests.
func (w world) loadBusy(tx *store.Tx) error {
	tasks, err := store.Tasks.By(tx, "states", string(cf.TaskPending), string(cf.TaskRunning), string(cf.TaskCanceling))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		w.busy(t.AppGUID, "a task runs")
	}
	deployments, err := store.Deployments.By(tx, "status_values", cf.Active)
	if err != nil {
		return err
	}
	for _, d := range deployments {
		w.busy(d.AppGUID, "a deployment is under way")
	}
	return w.loadRoutes(tx)
}

func (w world) busy(appGUID, why string) {
	if a := w[appGUID]; a != nil {
		a.busy = cmp.Or(a.busy, why)
	}
}

// loadRoutes finds what gets requests that the router does not see, or none.
func (w world) loadRoutes(tx *store.Tx) error {
	domains, err := store.Domains.All(tx)
	if err != nil {
		return err
	}
	internal := map[string]bool{}
	for _, d := range domains {
		internal[d.GUID] = d.Internal
	}
	routes, err := store.Routes.By(tx, "app_guids", w.guids()...)
	if err != nil {
		return err
	}
	type service struct{ appGUID, processType string }
	served := map[service]bool{}
	for _, r := range routes {
		for _, to := range r.Destinations {
			served[service{to.AppGUID, desire.ProcessType(to)}] = true
			if internal[r.DomainGUID] {
				w.busy(to.AppGUID, "it has an internal route")
			}
		}
	}
	for guid, a := range w {
		for _, p := range a.processes {
			if !served[service{guid, p.Type}] {
				w.busy(guid, "a process has no route")
			}
		}
	}
	return nil
}
