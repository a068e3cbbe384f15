package reconcile

import (
	"cmp"
	"maps"
	"slices"

	"cupola/server/bbs/bbsrows"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// loader reads a World out of one transaction.
type loader struct {
	tx        *store.Tx
	api       string
	fetches   *fetches
	bbs       *bbsrows.Cache
	sources   []Source
	images    *images
	checks    *checks
	versions  func(stack string) string
	platform  desire.Platform
	stacks    map[string]*cf.Stack // by name
	apps      map[string]*cf.App
	spaces    map[string]*cf.Space
	orgs      map[string]*cf.Org
	droplets  map[string]*cf.Droplet
	packages  map[string]*cf.Package  // of the docker lifecycle's droplets
	revisions map[string]*cf.Revision // by GUID
	earlier   madeProcesses           // at the last look
	routes    map[string][]*cf.Route  // by the GUIDs of the apps that they lead to
	domains   map[string]*cf.Domain
	services  map[string][]cf.AppService
	packs     []*cf.Buildpack      // by position
	builds    []*cf.Build          // that are staging
	tasks     []*cf.Task           // that have not ended
	sleeps    map[string]*cf.Sleep // by the GUIDs of processes
	made      madeProcesses

	unknown []string // owners of containers that keep running: see keep

	world World
}

// load reads all but the cells.
func (l *Loop) load(tx *store.Tx, cells []CellState) (World, error) {
	r := l.loader(tx)
	r.fetches, r.bbs, r.sources, r.images, r.checks, r.versions, r.earlier = l.fetches, l.bbs, l.sources, l.images, l.checks, l.versions, l.processes
	r.world = World{Now: tx.Now, Cells: cells}
	err := r.do(r.loadPlatform, r.loadOwners, r.loadApps, r.loadRoutes, r.loadProcesses, r.workOfBuilds, r.workOfTasks, r.loadRows, r.loadSources, r.loadBBS, r.stale, r.keepDamaged)
	if err == nil {
		l.processes = r.made
	}
	return r.world, err
}

func (l *Loop) loader(tx *store.Tx) *loader {
	return &loader{tx: tx, api: l.api, made: madeProcesses{of: map[string]madeProcess{}}}
}

// do does steps until one fails.
func (l *loader) do(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) loadPlatform() error {
	l.platform.API = l.api
	groups, err := store.EnvGroups.Kept(l.tx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		l.made.platform = append(l.made.platform, g)
		if g.Name == "running" {
			l.platform.Running = g.Vars
		} else {
			l.platform.Staging = g.Vars
		}
	}
	if l.platform.Groups, err = store.SecurityGroups.Kept(l.tx); err != nil {
		return err
	}
	for _, g := range l.platform.Groups {
		l.made.platform = append(l.made.platform, g)
	}
	if l.packs, err = store.Buildpacks.Kept(l.tx); err != nil {
		return err
	}
	slices.SortStableFunc(l.packs, func(a, b *cf.Buildpack) int { return cmp.Compare(a.Position, b.Position) })
	stacks, err := store.Stacks.Kept(l.tx)
	if !slices.Equal(l.earlier.platform, l.made.platform) {
		l.earlier = madeProcesses{}
	}
	l.stacks = index(stacks, func(s *cf.Stack) string { return s.Name })
	return err
}

// loadOwners reads what wants something to run once.
func (l *loader) loadOwners() (err error) {
	if l.builds, err = store.Builds.By(l.tx, "states", string(cf.BuildStaging)); err != nil {
		return err
	}
	l.tasks, err = store.Tasks.By(l.tx, "states", string(cf.TaskPending), string(cf.TaskRunning), string(cf.TaskCanceling))
	return err
}

// appsAtWork are apps with something to run once, which are not started.
func (l *loader) appsAtWork() (guids []string) {
	for _, b := range l.builds {
		guids = append(guids, b.AppGUID)
	}
	for _, t := range l.tasks {
		guids = append(guids, t.AppGUID)
	}
	return slices.DeleteFunc(guids, func(guid string) bool { return l.apps[guid] != nil })
}

// loadApps reads the apps that have something to run, and where they live.
func (l *loader) loadApps() error {
	l.apps = map[string]*cf.App{}
	started, err := store.Apps.KeptBy(l.tx, "states", string(cf.Started))
	if err != nil {
		return err
	}
	for _, a := range started {
		l.apps[a.GUID] = a
	}
	atWork, err := store.Apps.By(l.tx, "guids", l.appsAtWork()...)
	if err != nil {
		return err
	}
	for _, a := range atWork {
		l.apps[a.GUID] = a
	}
	var spaces, orgs []string
	for _, a := range l.apps {
		spaces = append(spaces, a.SpaceGUID)
	}
	inSpaces, err := store.Spaces.KeptBy(l.tx, "guids", spaces...)
	if err != nil {
		return err
	}
	l.spaces = index(inSpaces, func(s *cf.Space) string { return s.GUID })
	if l.services, err = store.ServiceBindings.OfApps(l.tx, slices.Collect(maps.Keys(l.apps))...); err != nil {
		return err
	}
	for _, s := range inSpaces {
		orgs = append(orgs, s.OrgGUID)
	}
	inOrgs, err := store.Orgs.KeptBy(l.tx, "guids", orgs...)
	l.orgs = index(inOrgs, func(o *cf.Org) string { return o.GUID })
	return err
}

func index[T any](list []*T, key func(*T) string) map[string]*T {
	m := make(map[string]*T, len(list))
	for _, v := range list {
		m[key(v)] = v
	}
	return m
}

func (l *loader) loadRoutes() error {
	domains, err := store.Domains.Kept(l.tx)
	if err != nil {
		return err
	}
	l.domains = index(domains, func(d *cf.Domain) string { return d.GUID })
	routes, err := store.Routes.Kept(l.tx)
	l.routes = map[string][]*cf.Route{}
	for _, r := range routes {
		for _, to := range r.Destinations {
			if of := l.routes[to.AppGUID]; len(of) == 0 || of[len(of)-1] != r {
				l.routes[to.AppGUID] = append(of, r)
			}
		}
	}
	return err
}

// owner is the app with the routes that lead to it; all types of process when
// processType is "".
func (l *loader) owner(app *cf.App, processType string) (o desire.Owner, ports []uint16, ok bool) {
	o = desire.Owner{Platform: l.platform, App: app, Space: l.spaces[app.SpaceGUID]}
	if o.Space == nil || l.orgs[o.Space.OrgGUID] == nil {
		return o, nil, false
	}
	o.Org = l.orgs[o.Space.OrgGUID]
	o.Bindings = desire.Bindings(l.services[app.GUID])
	o.URIs, ports = l.routesTo(app.GUID, processType)
	return o, ports, true
}

// routesTo are the names of the routes that lead to an app, and the ports of it
// that they name; 0 of one that names none.
func (l *loader) routesTo(appGUID, processType string) (uris []string, ports []uint16) {
	for _, r := range l.routes[appGUID] {
		d, leads := l.domains[r.DomainGUID], false
		for _, to := range r.Destinations {
			if d == nil || to.AppGUID != appGUID || processType != "" && desire.ProcessType(to) != processType {
				continue
			}
			leads = true
			ports = append(ports, uint16(to.Port))
		}
		if leads {
			uris = append(uris, desire.URI(r, d))
		}
	}
	return uris, ports
}

// orgOf is the organization that an app is in; "" where that just goes.
func (l *loader) orgOf(app *cf.App) string {
	if space := l.spaces[app.SpaceGUID]; space != nil {
		return space.OrgGUID
	}
	return ""
}

// loadRows reads what runs. The loop writes these rows itself, and is woken where
// others do.
func (l *loader) loadRows() error {
	return l.tx.Unnoted(func() error {
		actuals, err := store.ActualLRPs.Kept(l.tx)
		if err != nil {
			return err
		}
		for _, a := range actuals {
			l.world.Actuals = append(l.world.Actuals, *a)
		}
		tasks, err := store.LRPTasks.All(l.tx)
		for _, t := range tasks {
			l.world.Tasks = append(l.world.Tasks, *t)
		}
		return err
	})
}
