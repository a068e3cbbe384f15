package apps

import (
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/quota"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// Insert adds an app with its web process.
func Insert(c *control.Session, app *cf.App, lifecycle *Lifecycle) error {
	app.State, app.SSHEnabled, app.RevisionsOn = cf.Stopped, true, true
	app.Lifecycle = cf.Lifecycle{Type: cf.LifecycleBuildpack}
	if lifecycle != nil && lifecycle.Type == cf.LifecycleDocker {
		app.Lifecycle.Type = cf.LifecycleDocker
	}
	if err := ApplyLifecycle(c, &app.Lifecycle, &app.Credentials, lifecycle); err != nil {
		return err
	}
	if app.Lifecycle.Type == cf.LifecycleBuildpack && app.Lifecycle.Stack == "" {
		stack, err := defaultStack(c)
		if err != nil {
			return err
		}
		app.Lifecycle.Stack = stack.Name
	}
	if err := stackServes(c, app.Lifecycle.Stack, true); err != nil {
		return err
	}
	err := store.Apps.Insert(c.Tx, app)
	if store.IsTaken(err) {
		return cf.Unprocessable("App with the name '%s' already exists.", app.Name)
	}
	if err != nil {
		return err
	}
	if err := store.Processes.Insert(c.Tx, NewProcess(app, "web")); err != nil {
		return err
	}
	c.Note(app, "Created app with guid %s", app.GUID)
	return c.AuditApp(audit.AppCreate, app, audit.Data{"request": audit.Data{"name": app.Name}})
}

func defaultStack(c *control.Session) (*cf.Stack, error) {
	return store.Stacks.First(c.Tx, store.Query{Where: map[string][]string{"default": {"true"}}})
}

// Save writes an app that was changed.
func Save(c *control.Session, app *cf.App) error {
	err := store.Apps.Update(c.Tx, app)
	if store.IsTaken(err) {
		return cf.Unprocessable("App with the name '%s' already exists.", app.Name)
	}
	return err
}

// Start starts an app with what it is now: a new revision, where that differs from the last.
func Start(c *control.Session, app *cf.App) error {
	if app.State == cf.Started {
		return nil
	}
	if _, err := revise(c, app); err != nil {
		return err
	}
	return startAs(c, app)
}

// startAs starts an app with its latest revision.
func startAs(c *control.Session, app *cf.App) error {
	if err := setState(c, app, cf.Started); err != nil {
		return err
	}
	return c.AuditApp(audit.AppStart, app, nil)
}

// Stop stops an app.
func Stop(c *control.Session, app *cf.App) error {
	if app.State == cf.Stopped {
		return nil
	}
	if err := setState(c, app, cf.Stopped); err != nil {
		return err
	}
	return c.AuditApp(audit.AppStop, app, nil)
}

// Restart starts an app anew, with what it is now.
func Restart(c *control.Session, app *cf.App) error {
	if _, err := revise(c, app); err != nil {
		return err
	}
	if app.State == cf.Started {
		if err := setState(c, app, cf.Stopped); err != nil {
			return err
		}
	}
	if err := setState(c, app, cf.Started); err != nil {
		return err
	}
	return c.AuditApp(audit.AppRestart, app, nil)
}

// setState writes a change of the desired state. Going from STARTED to STOPPED
// makes a new revision of what runs, so that the next start never keeps an old
// instance.
func setState(c *control.Session, app *cf.App, state cf.AppState) error {
	if state == cf.Started && app.DropletGUID == "" {
		return cf.Unprocessable("Assign a droplet before starting this app.")
	}
	if state == cf.Started {
		if err := ImageAllowed(c, app.Lifecycle); err != nil {
			return err
		}
		if err := runAs(c, app); err != nil {
			return err
		}
		if err := services.Fit(c, app, services.TheApp); err != nil {
			return err
		}
	}
	if app.State == cf.Started && state == cf.Stopped {
		app.Rev++
	}
	app.State = state
	c.Note(app, "Updated app with guid %s ({\"state\"=>\"%s\"})", app.GUID, state)
	return quota.Within(c, app.SpaceGUID, quota.Processes, func() error { return Save(c, app) })
}

// AssignDroplet makes a droplet the app's current one, and gives the app the
// processes that the droplet has and it lacks.
func AssignDroplet(c *control.Session, app *cf.App, guid string) error {
	d, err := store.Droplets.Get(c.Tx, guid)
	if err != nil || d.AppGUID != app.GUID || d.State != cf.DropletStaged {
		if err != nil && !store.IsNotFound(err) {
			return err
		}
		return cf.Unprocessable("Unable to assign current droplet. Ensure the droplet exists and belongs to this app.")
	}
	app.DropletGUID = d.GUID
	if err := Save(c, app); err != nil {
		return err
	}
	if err := addProcesses(c, app, d); err != nil {
		return err
	}
	return c.AuditApp(audit.AppDropletMapped, app, audit.Data{"request": audit.Data{"droplet_guid": d.GUID}})
}
