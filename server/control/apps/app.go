package apps

import (
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// NewApp is a request for an app.
type NewApp struct {
	Name          change.Field[string]          `json:"name"`
	Lifecycle     *Lifecycle                    `json:"lifecycle"`
	Env           change.Field[map[string]*any] `json:"environment_variables"`
	Metadata      *change.Metadata              `json:"metadata"`
	Relationships struct {
		Space change.ToOne `json:"space"`
	} `json:"relationships"`
}

// Create makes an app in a space that the actor sees.
func Create(c *control.Session, req NewApp) (*cf.App, error) {
	if err := control.Invalid(control.NameFaults(req.Name.V)); err != nil {
		return nil, err
	}
	space, err := c.TargetSpace(req.Relationships.Space.GUID())
	if err != nil {
		return nil, err
	}
	app := &cf.App{Name: req.Name.V, SpaceGUID: space.GUID}
	if app.Env, err = PatchEnv(nil, req.Env.V); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&app.Metadata); err != nil {
		return nil, err
	}
	return app, Insert(c, app, req.Lifecycle, c.Asked)
}

// Insert adds an app with its web process. The request for it is as audit events show it.
func Insert(c *control.Session, app *cf.App, lifecycle *Lifecycle, request audit.Data) error {
	if err := firstLifecycle(c, app, lifecycle); err != nil {
		return err
	}
	return insert(c, app, request)
}

// InsertSkeleton is Insert for an app of a manifest, the rest of which its job applies.
func InsertSkeleton(c *control.Session, app *cf.App, lifecycle *Lifecycle, request audit.Data) error {
	if err := skeletonLifecycle(c, app, lifecycle); err != nil {
		return err
	}
	return insert(c, app, request)
}

func insert(c *control.Session, app *cf.App, request audit.Data) error {
	app.State, app.SSHEnabled, app.RevisionsOn = cf.Stopped, true, true
	err := nameTaken(app, store.Apps.Insert(c.Tx, app))
	if control.IsKind(err, cf.UnprocessableEntity) {
		err = cf.Errorf(cf.Taken, "%s", err)
	}
	if err != nil {
		return err
	}
	web := NewProcess(app, "web")
	if err := store.Processes.Insert(c.Tx, web); err != nil {
		return err
	}
	if err := processEvent(c, audit.AppProcessCreate, app, web, audit.Data{}); err != nil {
		return err
	}
	c.Note(app, "Created app with guid %s", app.GUID)
	return c.AuditApp(audit.AppCreate, app, c.Request(request))
}

func nameTaken(app *cf.App, err error) error {
	if store.IsTaken(err) {
		return cf.Unprocessable("App with the name '%s' already exists.", app.Name)
	}
	return err
}

// Shown are the fields of an app that its document shows as they are.
func Shown(app *cf.App) map[string]any {
	return map[string]any{"name": app.Name, "state": app.State}
}

// AppChange is a change of an app.
type AppChange struct {
	Name      change.Field[string] `json:"name"`
	Lifecycle *Lifecycle           `json:"lifecycle"`
	Metadata  *change.Metadata     `json:"metadata"`
}

// Update changes an app.
func Update(c *control.Session, app *cf.App, req AppChange) error {
	if req.Name.Set {
		app.Name = req.Name.V
	}
	if err := control.Invalid(control.NameFaults(app.Name)); err != nil {
		return err
	}
	if err := ChangeLifecycle(c, app, req.Lifecycle); err != nil {
		return err
	}
	if err := req.Metadata.Apply(&app.Metadata); err != nil {
		return err
	}
	if err := Save(c, app); err != nil {
		return err
	}
	return c.AuditApp(audit.AppUpdate, app, c.Request(c.Asked))
}

// Save writes an app that was changed.
func Save(c *control.Session, app *cf.App) error {
	return nameTaken(app, store.Apps.Update(c.Tx, app))
}

// Start starts an app with its current configuration: as a new revision, if that differs from the last.
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

// Restart stops an app and starts it with its current droplet and configuration.
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
	if state == cf.Started {
		if err := mayStart(c, app); err != nil {
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

// mayStart checks that an app can start, and updates its processes to its current
// configuration.
func mayStart(c *control.Session, app *cf.App) error {
	if app.DropletGUID == "" {
		return cf.Unprocessable("Assign a droplet before starting this app.")
	}
	if err := lifecycleAllowed(c, app.Lifecycle); err != nil {
		return err
	}
	if err := runAs(c, app); err != nil {
		return err
	}
	return services.Fit(c, app, services.TheApp)
}

// SetDroplet is assignDroplet on a user's request: no deployment may be under
// way.
func SetDroplet(c *control.Session, app *cf.App, guid string) error {
	if err := notDeploying(c, app, "Unable to assign current droplet while the app has a deployment in progress. Wait for the deployment to complete or cancel it."); err != nil {
		return err
	}
	return assignDroplet(c, app, guid)
}

// assignDroplet makes a droplet the app's current one, and gives the app the
// processes that the droplet has and it lacks.
func assignDroplet(c *control.Session, app *cf.App, guid string) error {
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
	if err := c.AuditApp(audit.AppDropletMapped, app, audit.Data{"request": audit.Data{"droplet_guid": d.GUID}}); err != nil {
		return err
	}
	if err := addProcesses(c, app, d); err != nil {
		return err
	}
	return takeSidecars(c, app, d)
}
