package reconcile

import (
	"context"
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// damaged are unreadable rows of instances and tasks. They are repaired as far as the
// loop can do without the lost values.
type damaged struct {
	actuals []*lrp.Actual
	tasks   []*lrp.Task
}

func damagedIn(tx *store.Tx) damaged {
	return damaged{store.ActualLRPs.Damaged(tx), store.LRPTasks.Damaged(tx)}
}

func (d damaged) any() bool { return len(d.actuals)+len(d.tasks) > 0 }

// mend makes damaged rows readable.
func (l *Loop) mend(ctx context.Context, d damaged) error {
	return l.store.Write(ctx, func(tx *store.Tx) error {
		for _, a := range d.actuals {
			if err := store.ActualLRPs.Mend(tx, a.Key); err != nil {
				return err
			}
		}
		for _, t := range d.tasks {
			if err := store.LRPTasks.Mend(tx, t.GUID); err != nil {
				return err
			}
		}
		return nil
	})
}

// keepDamaged keeps the containers of damaged rows running: what these rows
// desire is unknown.
func (l *loader) keepDamaged() error {
	for _, p := range store.Processes.Damaged(l.tx) {
		l.unknown = append(l.unknown, p.GUID)
	}
	processes, err := store.Processes.By(l.tx, "app_guids", guidsOf(store.Apps.Damaged(l.tx))...)
	for _, p := range processes {
		l.unknown = append(l.unknown, p.GUID)
	}
	for _, d := range store.BBSDesireds.Damaged(l.tx) {
		l.unknown = append(l.unknown, d.ProcessGUID)
	}
	for _, b := range store.Builds.Damaged(l.tx) {
		l.unknown = append(l.unknown, b.GUID)
	}
	for _, t := range store.Tasks.Damaged(l.tx) {
		l.unknown = append(l.unknown, t.GUID)
	}
	for _, t := range store.BBSTasks.Damaged(l.tx) {
		l.unknown = append(l.unknown, t.RunGUID)
	}
	l.keep(l.unknown)
	return err
}

func guidsOf(apps []*cf.App) (guids []string) {
	for _, a := range apps {
		guids = append(guids, a.GUID)
	}
	return guids
}

// dependsOnDamage reports whether a row that a process needs cannot be read.
func (l *loader) dependsOnDamage(p *cf.Process, app *cf.App) bool {
	return l.isDamaged(app) || slices.ContainsFunc(store.Droplets.Damaged(l.tx), func(d *cf.Droplet) bool { return d.GUID == desire.DropletGUID(p, app) }) ||
		slices.ContainsFunc(store.Revisions.Damaged(l.tx), func(r *cf.Revision) bool { return r.GUID == p.RevisionGUID })
}

// isDamaged reports whether an app's own row, its space's or its org's cannot be
// read.
func (l *loader) isDamaged(app *cf.App) bool {
	space := l.spaces[app.SpaceGUID]
	return slices.ContainsFunc(store.Apps.Damaged(l.tx), func(a *cf.App) bool { return a.GUID == app.GUID }) ||
		slices.ContainsFunc(store.Spaces.Damaged(l.tx), func(s *cf.Space) bool { return s.GUID == app.SpaceGUID }) ||
		space != nil && slices.ContainsFunc(store.Orgs.Damaged(l.tx), func(o *cf.Org) bool { return o.GUID == space.OrgGUID })
}

// ofDamagedApp reports whether work is for an app that cannot be read. Its
// containers then keep running.
func (l *loader) ofDamagedApp(workGUID, appGUID string) bool {
	app := l.apps[appGUID]
	if app == nil {
		app = &cf.App{Resource: cf.Resource{GUID: appGUID}}
	}
	if !l.isDamaged(app) {
		return false
	}
	l.unknown = append(l.unknown, workGUID)
	return true
}
