package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// Config configures a Loop.
type Config struct {
	Store *store.Store
	// Within makes a change in a space, or says which quota it breaks: that is
	// then the deployment's error.
	Within func(tx *store.Tx, spaceGUID string, change func() error) error
	Log    *slog.Logger
}

// Loop advances deployments.
type Loop struct{ Config }

// New makes a Loop.
func New(c Config) *Loop { return &Loop{c} }

// Run advances deployments until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	ctx = store.As(ctx, "deployments")
	return store.Derive(ctx, l.Store, store.Derivation[due]{Name: "deployments", Read: look, Use: store.Always(l.move), Tick: healthyInterval, Log: l.Log})
}

// due are the deployments with a step to make.
type due struct {
	guids []string
	fault error // of others, which could not be looked at
}

// look finds them without keeping others from writing: most looks find none.
func look(tx *store.Tx) (d due, err error) {
	active, err := store.Deployments.Active(tx)
	for _, a := range active {
		_, c, fault := decide(tx, a.GUID)
		if fault != nil {
			d.fault = errors.Join(d.fault, fmt.Errorf("deployment %s: %w", a.GUID, fault))
		} else if !c.empty() {
			d.guids = append(d.guids, a.GUID)
		}
	}
	return d, err
}

// move makes a step of each.
func (l *Loop) move(ctx context.Context, d due) error {
	for _, guid := range d.guids {
		if err := l.step(ctx, guid); err != nil {
			d.fault = errors.Join(d.fault, fmt.Errorf("deployment %s: %w", guid, err))
		}
	}
	return d.fault
}

// step makes one step of a deployment from its current rows.
func (l *Loop) step(ctx context.Context, guid string) error {
	err := l.Store.Write(ctx, func(tx *store.Tx) error {
		w, c, err := decide(tx, guid)
		if err != nil || c.empty() {
			return err
		}
		return l.Within(tx, w.App.SpaceGUID, func() error { return write(tx, c) })
	})
	var fault *cf.Error
	if errors.As(err, &fault) {
		return l.blame(ctx, guid, fault.Detail)
	}
	if err == nil {
		l.Log.DebugContext(ctx, "deployment was moved on", "deployment_guid", guid)
	}
	return err
}

// decide loads a deployment and calls step. A deployment that is gone or done needs
// no change.
func decide(tx *store.Tx, guid string) (world, change, error) {
	d, err := store.Deployments.Get(tx, guid)
	if store.IsNotFound(err) || err == nil && d.StatusValue != cf.Active {
		return world{}, change{}, nil
	}
	if err != nil {
		return world{}, change{}, err
	}
	w, err := load(tx, d)
	if err != nil {
		return w, change{}, err
	}
	return w, w.step(), nil
}

// blame records why a deployment does not advance.
func (l *Loop) blame(ctx context.Context, guid, why string) error {
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		d, err := store.Deployments.Get(tx, guid)
		if err != nil || d.Error == why {
			return err
		}
		d.Error = why
		return store.Deployments.Update(tx, d)
	})
}

func write(tx *store.Tx, c change) error {
	for _, guid := range c.Delete {
		if err := store.Processes.Delete(tx, guid); err != nil {
			return err
		}
	}
	for _, p := range c.Update {
		if err := store.Processes.Update(tx, &p); err != nil {
			return err
		}
	}
	return store.Deployments.Update(tx, c.Deployment)
}

// load reads the world of a deployment.
func load(tx *store.Tx, d *cf.Deployment) (world, error) {
	w := world{Now: tx.Now, Deployment: *d, Superseded: map[string]cf.DeploymentState{}}
	app, err := store.Apps.Get(tx, d.AppGUID)
	if err != nil {
		return w, err
	}
	w.App = *app
	processes, err := store.Processes.By(tx, "app_guids", app.GUID)
	if err != nil {
		return w, err
	}
	for _, p := range processes {
		if p.Type != "web" {
			w.Others = append(w.Others, *p)
			continue
		}
		actuals, err := store.ActualLRPs.By(tx, "process_guids", desire.ProcessGUID(p, app))
		if err != nil {
			return w, err
		}
		w.Web = append(w.Web, webProcess{*p, actuals})
	}
	return w, w.loadPast(tx)
}

// loadPast reads what came before a deployment, and its target.
func (w *world) loadPast(tx *store.Tx) error {
	past, err := store.Deployments.Where(tx, map[string][]string{"app_guids": {w.App.GUID}, "status_reasons": {cf.Superseded}})
	for _, d := range past {
		w.Superseded[d.WebProcess] = d.State
	}
	if err != nil || w.Deployment.RevisionGUID == "" {
		return err
	}
	w.Revision, err = store.Revisions.Get(tx, w.Deployment.RevisionGUID)
	if store.IsNotFound(err) {
		return nil
	}
	return err
}
