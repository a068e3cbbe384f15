package reconcile

import (
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
	versions  func(stack string) string
	platform  desire.Platform
	stacks    map[string]*cf.Stack // by name
	apps      map[string]*cf.App
	spaces    map[string]*cf.Space
	orgs      map[string]*cf.Org
	droplets  map[string]*cf.Droplet
	packages  map[string]*cf.Package  // of the docker lifecycle's droplets
	revisions map[string]*cf.Revision // by GUID
	known     map[string]*cf.Revision // that an earlier look read
	routes    map[string][]*cf.Route  // by the GUIDs of the apps that they lead to
	domains   map[string]*cf.Domain
	services  map[string][]cf.AppService
	packs     []*cf.Buildpack      // by position
	builds    []*cf.Build          // that are staging
	tasks     []*cf.Task           // that have not ended
	sleeps    map[string]*cf.Sleep // by the GUIDs of processes

	unknown []string // owners of containers that keep running: see keep

	world World
}

// load reads all but the cells.
func (l *Loop) load(tx *store.Tx, cells []CellState) (World, error) {
	r := &loader{tx: tx, api: l.api, fetches: l.fetches, bbs: l.bbs, sources: l.sources, images: l.images, versions: l.versions, known: l.revisions, world: World{Now: tx.Now, Cells: cells}}
	err := r.do(r.loadPlatform, r.loadOwners, r.loadApps, r.loadRoutes, r.loadProcesses, r.workOfBuilds, r.workOfTasks, r.loadRows, r.loadSources, r.loadBBS, r.stale, r.keepDamaged)
	if err == nil {
		l.revisions = r.revisions
	}
	return r.world, err
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
	groups, err := store.EnvGroups.All(l.tx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.Name == "running" {
			l.platform.Running = g.Vars
		} else {
			l.platform.Staging = g.Vars
		}
	}
	if l.platform.Groups, err = store.SecurityGroups.All(l.tx); err != nil {
		return err
	}
	if l.packs, err = store.Buildpacks.Matching(l.tx, store.Query{Order: "position"}); err != nil {
		return err
	}
	stacks, err := store.Stacks.All(l.tx)
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

func (l *loader) appsAtWork() []string {
	var guids []string
	for _, b := range l.builds {
		guids = append(guids, b.AppGUID)
	}
	for _, t := range l.tasks {
		guids = append(guids, t.AppGUID)
	}
	return guids
}

// loadApps reads the apps that have something to run, and where they live.
func (l *loader) loadApps() error {
	l.apps = map[string]*cf.App{}
	started, err := store.Apps.By(l.tx, "states", string(cf.Started))
	if err != nil {
		return err
	}
	atWork, err := store.Apps.By(l.tx, "guids", l.appsAtWork()...)
	if err != nil {
		return err
	}
	for _, a := range slices.Concat(started, atWork) {
		l.apps[a.GUID] = a
	}
	var spaces, orgs []string
	for _, a := range l.apps {
		spaces = append(spaces, a.SpaceGUID)
	}
	inSpaces, err := store.Spaces.By(l.tx, "guids", spaces...)
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
	inOrgs, err := store.Orgs.By(l.tx, "guids", orgs...)
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
	domains, err := store.Domains.All(l.tx)
	if err != nil {
		return err
	}
	l.domains = index(domains, func(d *cf.Domain) string { return d.GUID })
	routes, err := store.Routes.All(l.tx)
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
// that they name.
func (l *loader) routesTo(appGUID, processType string) (uris []string, ports []uint16) {
	for _, r := range l.routes[appGUID] {
		d, leads := l.domains[r.DomainGUID], false
		for _, to := range r.Destinations {
			if d == nil || to.AppGUID != appGUID || processType != "" && desire.ProcessType(to) != processType {
				continue
			}
			leads = true
			if to.Port != 0 {
				ports = append(ports, uint16(to.Port))
			}
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

// loadProcesses derives what apps that are started desire; nothing of those that sleep
// without instances.
func (l *loader) loadProcesses() error {
	var guids []string
	for _, a := range l.apps {
		if a.State == cf.Started && a.DropletGUID != "" {
			guids = append(guids, a.GUID)
		}
	}
	processes, err := store.Processes.By(l.tx, "app_guids", guids...)
	if err != nil {
		return err
	}
	var droplets, revisions []string
	for _, p := range processes {
		droplets = append(droplets, desire.DropletGUID(p, l.apps[p.AppGUID]))
		if p.RevisionGUID != "" {
			revisions = append(revisions, p.RevisionGUID)
		}
	}
	if err := l.loadDroplets(droplets); err != nil {
		return err
	}
	if err := l.loadRevisions(revisions); err != nil {
		return err
	}
	sleeps, err := store.Sleeps.All(l.tx)
	l.sleeps = index(sleeps, func(s *cf.Sleep) string { return s.ProcessGUID })
	for _, p := range processes {
		l.process(p)
	}
	return err
}

func (l *loader) process(p *cf.Process) {
	app := l.apps[p.AppGUID]
	o, ports, ok := l.owner(app, p.Type)
	d := l.droplets[desire.DropletGUID(p, app)]
	if l.dependsOnDamage(p, app) {
		l.unknown = append(l.unknown, p.GUID)
		return
	}
	if ok && d != nil && !desire.Away(l.sleeps[p.GUID], p, app) {
		in := desire.ProcessIn{Owner: o, Process: p, Droplet: d, Ports: ports, Package: l.credentialOf(d)}
		l.world.Desired = append(l.world.Desired, desire.Process(in.At(l.revisions[p.RevisionGUID])))
	}
}

// loadRevisions reads what processes were started with. What runs of a revision
// never changes, and its environment takes time to unseal: those that are known
// already are not read again.
func (l *loader) loadRevisions(guids []string) error {
	missing := slices.DeleteFunc(slices.Clone(guids), func(guid string) bool { return l.known[guid] != nil })
	rows, err := store.Revisions.By(l.tx, "guids", missing...)
	l.revisions = index(rows, func(r *cf.Revision) string { return r.GUID })
	for _, guid := range guids {
		if r := l.known[guid]; r != nil {
			l.revisions[guid] = r
		}
	}
	return err
}

// loadDroplets reads those of the droplets that are STAGED.
func (l *loader) loadDroplets(guids []string) error {
	if l.droplets == nil {
		l.droplets = map[string]*cf.Droplet{}
	}
	rows, err := store.Droplets.Matching(l.tx, store.Query{Where: map[string][]string{"guids": guids, "states": {string(cf.DropletStaged)}}})
	var packages []string
	for _, d := range rows {
		l.droplets[d.GUID] = d
		if d.Lifecycle.Type == cf.LifecycleDocker {
			packages = append(packages, d.PackageGUID)
		}
	}
	if err != nil || len(packages) == 0 {
		return err
	}
	all, err := store.Packages.By(l.tx, "guids", packages...)
	if l.packages == nil {
		l.packages = map[string]*cf.Package{}
	}
	maps.Copy(l.packages, index(all, func(p *cf.Package) string { return p.GUID }))
	return err
}

// credentialOf is what the registry of a docker droplet's image asks for.
func (l *loader) credentialOf(d *cf.Droplet) cf.Credential {
	if p := l.packages[d.PackageGUID]; p != nil {
		return p.Credential
	}
	return cf.Credential{}
}

// loadRows reads what runs. The loop writes these rows itself, and is woken where
// others do.
func (l *loader) loadRows() error {
	return l.tx.Unnoted(func() error {
		actuals, err := store.ActualLRPs.All(l.tx)
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
