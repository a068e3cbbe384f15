package director

import (
	"context"
	"fmt"
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// prepare finds what a task has to do, and writes its plan, with all that it
// makes of instances, in one transaction.
func (l *Loop) prepare(ctx context.Context, t *cf.BOSHTask) error {
	o, err := orderOf(t)
	if err != nil {
		return err
	}
	if err := l.start(ctx, t); err != nil {
		return err
	}
	switch Kind(t.Kind) {
	case Deploy:
		return l.prepareDeploy(ctx, t, o)
	case ExportRelease:
		return l.prepareExport(ctx, t, *o.Export)
	}
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		if row, err := unplanned(tx, t); err != nil || row == nil {
			return err
		}
		p, err := l.change(tx, t, o)
		if err != nil {
			return err
		}
		return plan(tx, t, p)
	})
}

// start marks a task as being done.
func (l *Loop) start(ctx context.Context, t *cf.BOSHTask) error {
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		row, err := store.BOSHTasks.Get(tx, t.GUID)
		if err != nil || row.State != cf.BOSHQueued {
			return err
		}
		row.State, row.StartedAt = cf.BOSHProcessing, tx.Now
		if err := recordStart(tx, row); err != nil {
			return err
		}
		return store.BOSHTasks.Update(tx, row)
	})
}

// unplanned is the row of a task that was not prepared yet; nil when it was, or
// has ended: the loop may have begun to prepare it a moment too late.
func unplanned(tx *store.Tx, t *cf.BOSHTask) (*cf.BOSHTask, error) {
	row, err := store.BOSHTasks.Get(tx, t.GUID)
	if err != nil || row.State != cf.BOSHProcessing && row.State != cf.BOSHQueued || len(row.Plan) > 0 {
		return nil, err
	}
	return row, nil
}

// plan writes what a task came to.
func plan(tx *store.Tx, t *cf.BOSHTask, p taskPlan) error {
	row, err := store.BOSHTasks.Get(tx, t.GUID)
	if err != nil {
		return err
	}
	if row.Plan, err = p.encode(); err != nil {
		return err
	}
	return store.BOSHTasks.Update(tx, row)
}

// change sets the desired state of a deployment's instances for a task without
// a new manifest.
func (l *Loop) change(tx *store.Tx, t *cf.BOSHTask, o Order) (taskPlan, error) {
	d, rows, err := named(tx, t.DeploymentName, Kind(t.Kind), o)
	if err != nil {
		return taskPlan{}, err
	}
	m, findings := manifest.Parse(d.Manifest)
	if len(d.Manifest) > 0 && findings.Err() != nil {
		return taskPlan{}, fmt.Errorf("the manifest of deployment %s cannot be read any longer", d.Name)
	}
	p := taskPlan{DropDisks: o.DropDisks, WhenChanged: o.WhenChanged, KeepAlive: o.KeepAlive, SkipDrain: o.SkipDrain, Group: o.Group, Index: o.Index}
	if p.Errand, p.ErrandJob, err = errandNamed(tx, rows, o.Errand); err != nil {
		return p, err
	}
	for _, g := range m.InstanceGroups {
		of, err := groupOf(m, g, o)
		if err != nil {
			return p, err
		}
		if kind := Kind(t.Kind); o.Canaries == "" && kind != Restart && kind != Recreate {
			of.Canaries = 0 // nothing new comes up
		}
		p.Groups = append(p.Groups, of)
	}
	p.addMissing(rows)
	if o.Repair {
		return p, l.repair(tx, t, d, rows, &p)
	}
	if o.Fix {
		if p.Unresponsive, err = l.unresponsive(tx, d, rows); err != nil {
			return p, err
		}
	}
	return p, p.setDesired(tx, Kind(t.Kind), o, rows)
}

// setDesired sets the desired state of the instances that an order is about.
func (p *taskPlan) setDesired(tx *store.Tx, kind Kind, o Order, rows []*cf.BOSHInstance) error {
	for _, r := range rows {
		if !o.names(r) || kind == Recreate && !o.oldEnough(r) {
			continue
		}
		if r.Lifecycle == string(manifest.Service) && (kind == Recreate || kind == Stop && o.Hard) {
			p.Discard = append(p.Discard, r.GUID)
		}
		if setDesired(kind, r) {
			if err := store.BOSHInstances.Update(tx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// unresponsive returns the GUIDs of instances that should run, but have a process
// without a running container.
func (l *Loop) unresponsive(tx *store.Tx, d *cf.BOSHDeployment, rows []*cf.BOSHInstance) (guids []string, err error) {
	actuals, err := store.ActualLRPs.By(tx, "domains", lrp.BOSHDomain(d.Name))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Goal != cf.BOSHStarted || r.Phase != cf.BOSHRunning {
			continue
		}
		i, err := l.seen(tx, r, actuals)
		if err != nil {
			return nil, err
		}
		if i.Spec == nil || !alive(agent.Instance{Spec: *i.Spec, Digest: r.Digest}, actuals) {
			guids = append(guids, r.GUID)
		}
	}
	return guids, nil
}

// alive reports whether each process of an instance has a running container.
func alive(i agent.Instance, actuals []*lrp.Actual) bool {
	for _, guid := range i.Processes() {
		if !slices.ContainsFunc(actuals, func(a *lrp.Actual) bool { return a.ProcessGUID == guid && a.State == lrp.Running }) {
			return false
		}
	}
	return true
}

// addMissing plans for groups that instances have and the manifest has not any
// longer.
func (p *taskPlan) addMissing(rows []*cf.BOSHInstance) {
	has := map[string]bool{}
	for _, g := range p.Groups {
		has[g.Name] = true
	}
	for _, r := range rows {
		if !has[r.Group] {
			has[r.Group] = true
			p.Groups = append(p.Groups, group{Name: r.Group, Lifecycle: manifest.Lifecycle(r.Lifecycle), MaxInFlight: 1, UpdateWatch: watch(nil), CanaryWatch: watch(nil)})
		}
	}
}

// setDesired sets an instance's desired state for a kind of task, and reports whether
// that changes it.
func setDesired(kind Kind, r *cf.BOSHInstance) bool {
	was := *r
	switch kind {
	case Delete:
		r.Goal = cf.BOSHGone
	case Stop:
		if r.Lifecycle == string(manifest.Service) {
			r.Goal = cf.BOSHHalted
		}
	case Start, Restart, Recreate:
		if r.Lifecycle != string(manifest.Service) {
			return false
		}
		r.Goal = cf.BOSHStarted
		if kind != Start {
			r.Renew++
		}
	}
	return *r != was
}
