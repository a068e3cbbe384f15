package reconcile

import (
	"maps"
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// loadProcesses derives what apps that are started desire; nothing of those that sleep
// without instances.
func (l *loader) loadProcesses() error {
	var guids []string
	for _, a := range l.apps {
		if a.State == cf.Started && a.DropletGUID != "" {
			guids = append(guids, a.GUID)
		}
	}
	processes, err := store.Processes.KeptBy(l.tx, "app_guids", guids...)
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
	rows, err := store.Droplets.KeptBy(l.tx, "guids", droplets...)
	if err != nil {
		return err
	}
	if err := l.addDroplets(rows); err != nil {
		return err
	}
	started, err := store.Revisions.KeptBy(l.tx, "guids", revisions...) // to unseal their environment takes time
	if err != nil {
		return err
	}
	l.revisions = index(started, func(r *cf.Revision) string { return r.GUID })
	sleeps, err := store.Sleeps.Kept(l.tx)
	l.sleeps = index(sleeps, func(s *cf.Sleep) string { return s.ProcessGUID })
	for _, p := range processes {
		l.process(p)
	}
	return err
}

// madeProcesses are what processes desire. What follows from the same rows is the same, and
// rows that are kept are the same as long as they do not change.
type madeProcesses struct {
	platform []any // the rows that all depend on
	of       map[string]madeProcess
}

type madeProcess struct {
	rows    []any
	desired lrp.Desired
}

func (l *loader) process(p *cf.Process) {
	app := l.apps[p.AppGUID]
	d := l.droplets[desire.DropletGUID(p, app)]
	if l.dependsOnDamage(p, app) {
		l.unknown = append(l.unknown, p.GUID)
		return
	}
	space := l.spaces[app.SpaceGUID]
	if space == nil || l.orgs[space.OrgGUID] == nil || d == nil || desire.Away(l.sleeps[p.GUID], p, app) {
		return
	}
	m := madeProcess{rows: l.rowsOf(p, app, d)}
	if was := l.earlier.of[p.GUID]; slices.Equal(was.rows, m.rows) {
		m.desired = was.desired
	} else {
		o, ports, _ := l.owner(app, p.Type)
		in := desire.ProcessIn{Owner: o, Process: p, Droplet: d, Ports: ports, Package: l.credentialOf(d)}
		m.desired = desire.Process(in.At(l.revisions[p.RevisionGUID]))
	}
	l.made.of[p.GUID] = m
	l.world.Desired = append(l.world.Desired, m.desired)
}

// rowsOf are the rows that a process depends on, besides those of the platform.
func (l *loader) rowsOf(p *cf.Process, app *cf.App, d *cf.Droplet) []any {
	space := l.spaces[app.SpaceGUID]
	rows := []any{p, app, space, l.orgs[space.OrgGUID], d, l.packages[d.PackageGUID], l.revisions[p.RevisionGUID]}
	for _, r := range l.routes[app.GUID] {
		rows = append(rows, r, l.domains[r.DomainGUID])
	}
	for _, s := range l.services[app.GUID] {
		rows = append(rows, s.Binding, s.Instance, s.Plan, s.Offering)
	}
	return rows
}

// addDroplets adds those of droplets that are STAGED.
func (l *loader) addDroplets(rows []*cf.Droplet) error {
	if l.droplets == nil {
		l.droplets = map[string]*cf.Droplet{}
	}
	var packages []string
	for _, d := range rows {
		if d.State != cf.DropletStaged {
			continue
		}
		l.droplets[d.GUID] = d
		if d.Lifecycle.Type == cf.LifecycleDocker {
			packages = append(packages, d.PackageGUID)
		}
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
