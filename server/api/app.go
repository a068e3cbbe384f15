package api

import (
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

func viewApp(c *call, a *cf.App) doc {
	self := "/v3/apps/" + a.GUID
	return with(resource(a.Resource), doc{
		"name": a.Name, "state": a.State, "lifecycle": viewLifecycle(a.Lifecycle, a.Credentials), "metadata": metadata(a.Metadata),
		"relationships": doc{"space": toOne(a.SpaceGUID), "current_droplet": toOne(a.DropletGUID)},
		"links": doc{
			"self":                  c.link("%s", self),
			"environment_variables": c.link("%s/environment_variables", self),
			"space":                 c.link("/v3/spaces/%s", a.SpaceGUID),
			"processes":             c.link("%s/processes", self),
			"packages":              c.link("%s/packages", self),
			"current_droplet":       c.link("%s/droplets/current", self),
			"droplets":              c.link("%s/droplets", self),
			"tasks":                 c.link("%s/tasks", self),
			"start":                 c.action("POST", "%s/actions/start", self),
			"stop":                  c.action("POST", "%s/actions/stop", self),
			"clear_buildpack_cache": c.action("POST", "%s/actions/clear_buildpack_cache", self),
			"revisions":             c.link("%s/revisions", self),
			"deployed_revisions":    c.link("%s/revisions/deployed", self),
			"features":              c.link("%s/features", self),
		},
	})
}

type appRequest struct {
	Name          change.Field[string]          `json:"name"`
	Lifecycle     *lifecycleRequest             `json:"lifecycle"`
	Env           change.Field[map[string]*any] `json:"environment_variables"`
	Metadata      *change.Metadata              `json:"metadata"`
	Relationships struct {
		Space ref `json:"space"`
	} `json:"relationships"`
}

func createApp(c *call) (*response, error) {
	var req appRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := control.Invalid(control.NameFaults(req.Name.V)); err != nil {
		return nil, err
	}
	space, err := c.TargetSpace(req.Relationships.Space.guid())
	if err != nil {
		return nil, err
	}
	app := &cf.App{Name: req.Name.V, SpaceGUID: space.GUID}
	if app.Env, err = patchEnv(nil, req.Env.V); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&app.Metadata); err != nil {
		return nil, err
	}
	if err := c.insertApp(app, req.Lifecycle); err != nil {
		return nil, err
	}
	return created(viewApp(c, app))
}

// insertApp adds an app with its web process.
func (c *call) insertApp(app *cf.App, lifecycle *lifecycleRequest) error {
	app.State, app.SSHEnabled, app.RevisionsOn = cf.Stopped, true, true
	app.Lifecycle = cf.Lifecycle{Type: cf.LifecycleBuildpack}
	if lifecycle != nil && lifecycle.Type == cf.LifecycleDocker {
		app.Lifecycle.Type = cf.LifecycleDocker
	}
	if err := c.applyLifecycle(&app.Lifecycle, &app.Credentials, lifecycle); err != nil {
		return err
	}
	if app.Lifecycle.Type == cf.LifecycleBuildpack && app.Lifecycle.Stack == "" {
		stack, err := c.defaultStack()
		if err != nil {
			return err
		}
		app.Lifecycle.Stack = stack.Name
	}
	if err := c.stackServes(app.Lifecycle.Stack, true); err != nil {
		return err
	}
	err := store.Apps.Insert(c.Tx, app)
	if store.IsTaken(err) {
		return cf.Unprocessable("App with the name '%s' already exists.", app.Name)
	}
	if err != nil {
		return err
	}
	if err := store.Processes.Insert(c.Tx, newProcess(app, "web")); err != nil {
		return err
	}
	c.Note(app, "Created app with guid %s", app.GUID)
	return c.AuditApp(audit.AppCreate, app, doc{"request": doc{"name": app.Name}})
}

func (c *call) defaultStack() (*cf.Stack, error) {
	return store.Stacks.First(c.Tx, store.Query{Where: map[string][]string{"default": {"true"}}})
}

func updateApp(c *call) (*response, error) {
	var req struct {
		Name      change.Field[string] `json:"name"`
		Lifecycle *lifecycleRequest    `json:"lifecycle"`
		Metadata  *change.Metadata     `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	app.Name = req.Name.Or(app.Name)
	if err := control.Invalid(control.NameFaults(app.Name)); err != nil {
		return nil, err
	}
	if err := c.changeLifecycle(app, req.Lifecycle); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&app.Metadata); err != nil {
		return nil, err
	}
	if err := c.saveApp(app); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppUpdate, app, doc{"request": doc{"name": app.Name}}); err != nil {
		return nil, err
	}
	return ok(viewApp(c, app))
}

func (c *call) saveApp(app *cf.App) error {
	err := store.Apps.Update(c.Tx, app)
	if store.IsTaken(err) {
		return cf.Unprocessable("App with the name '%s' already exists.", app.Name)
	}
	return err
}

func deleteApp(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	return c.deletes(jobDeleteApp, "apps", app.GUID)
}

// removeApp deletes an app with all that is its own, and takes it out of its
// routes. What runs of it is stopped, since nothing desires it any longer.
func removeApp(c *call, app *cf.App) error {
	if err := removeServices(c, app); err != nil {
		return err
	}
	err := control.EachOf(c.Session, store.Routes, "app_guids", app.GUID, func(r *cf.Route) error {
		r.Destinations = control.Without(r.Destinations, func(d cf.Destination) bool { return d.AppGUID == app.GUID })
		return store.Routes.Update(c.Tx, r)
	})
	if err != nil {
		return err
	}
	if n, err := c.Tx.ThinApp(app.GUID, removedRows); err != nil || n == removedRows {
		return control.OrElse(err, control.ErrMore)
	}
	if err := c.AuditApp(audit.AppDelete, app, nil); err != nil {
		return err
	}
	return store.Apps.Delete(c.Tx, app.GUID)
}

func startApp(c *call) (*response, error)   { return c.changeState((*call).start) }
func stopApp(c *call) (*response, error)    { return c.changeState((*call).stop) }
func restartApp(c *call) (*response, error) { return c.changeState((*call).restart) }

func (c *call) changeState(change func(*call, *cf.App) error) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	if err := change(c, app); err != nil {
		return nil, err
	}
	return ok(viewApp(c, app))
}

func (c *call) start(app *cf.App) error {
	if app.State == cf.Started {
		return nil
	}
	if _, err := c.revise(app); err != nil {
		return err
	}
	return c.startAs(app)
}

// startAs starts an app with its latest revision.
func (c *call) startAs(app *cf.App) error {
	if err := c.setState(app, cf.Started); err != nil {
		return err
	}
	return c.AuditApp(audit.AppStart, app, nil)
}

func (c *call) stop(app *cf.App) error {
	if app.State == cf.Stopped {
		return nil
	}
	if err := c.setState(app, cf.Stopped); err != nil {
		return err
	}
	return c.AuditApp(audit.AppStop, app, nil)
}

func (c *call) restart(app *cf.App) error {
	if _, err := c.revise(app); err != nil {
		return err
	}
	if app.State == cf.Started {
		if err := c.setState(app, cf.Stopped); err != nil {
			return err
		}
	}
	if err := c.setState(app, cf.Started); err != nil {
		return err
	}
	return c.AuditApp(audit.AppRestart, app, nil)
}

// setState writes a change of the desired state. Going from STARTED to STOPPED
// makes a new revision of what runs, so that the next start never keeps an old
// instance.
func (c *call) setState(app *cf.App, state cf.AppState) error {
	if state == cf.Started && app.DropletGUID == "" {
		return cf.Unprocessable("Assign a droplet before starting this app.")
	}
	if state == cf.Started {
		if err := c.imageAllowed(app.Lifecycle); err != nil {
			return err
		}
		if err := c.runAs(app); err != nil {
			return err
		}
		if err := services.Fit(c.Session, app, services.TheApp); err != nil {
			return err
		}
	}
	if app.State == cf.Started && state == cf.Stopped {
		app.Rev++
	}
	app.State = state
	c.Note(app, "Updated app with guid %s ({\"state\"=>\"%s\"})", app.GUID, state)
	return quota.Within(c.Tx, app.SpaceGUID, quota.Processes, func() error { return c.saveApp(app) })
}

func setCurrentDroplet(c *call) (*response, error) {
	var req ref
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	if err := c.notDeploying(app, noDroplet); err != nil {
		return nil, err
	}
	if err := c.assignDroplet(app, req.guid()); err != nil {
		return nil, err
	}
	return ok(doc{"data": doc{"guid": app.DropletGUID}, "links": doc{
		"self":    c.link("/v3/apps/%s/relationships/current_droplet", app.GUID),
		"related": c.link("/v3/apps/%s/droplets/current", app.GUID)}})
}

// assignDroplet makes a droplet the app's current one, and gives the app the
// processes that the droplet has and it lacks.
func (c *call) assignDroplet(app *cf.App, guid string) error {
	d, err := store.Droplets.Get(c.Tx, guid)
	if err != nil || d.AppGUID != app.GUID || d.State != cf.DropletStaged {
		if err != nil && !store.IsNotFound(err) {
			return err
		}
		return cf.Unprocessable("Unable to assign current droplet. Ensure the droplet exists and belongs to this app.")
	}
	app.DropletGUID = d.GUID
	if err := c.saveApp(app); err != nil {
		return err
	}
	if err := c.addProcesses(app, d); err != nil {
		return err
	}
	return c.AuditApp(audit.AppDropletMapped, app, doc{"request": doc{"droplet_guid": d.GUID}})
}

func currentDropletRelationship(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	if app.DropletGUID == "" {
		return nil, cf.Errorf(cf.ResourceNotFound, "Droplet not found")
	}
	return ok(doc{"data": doc{"guid": app.DropletGUID}, "links": doc{
		"self":    c.link("/v3/apps/%s/relationships/current_droplet", app.GUID),
		"related": c.link("/v3/apps/%s/droplets/current", app.GUID)}})
}

const appIncludes = "include=space|space.organization|org"

func includeOfApps(c *call, rows []*cf.App, what string) (string, []doc, error) {
	spaces := control.GUIDs(rows, func(a *cf.App) string { return a.SpaceGUID })
	if what == "space" {
		docs, err := including(c, store.Spaces, viewSpace, spaces)
		return "spaces", docs, err
	}
	docs, err := includingOrgsOf(c, spaces)
	return "organizations", docs, err
}

var listApps = inTx(func(c *call) (*response, error) {
	return listIncluding(c, store.Apps, viewApp, includeOfApps, appIncludes)
})

func views[T any](c *call, rows []*T, v view[T]) []doc {
	out := []doc{}
	for _, r := range rows {
		out = append(out, v(c, r))
	}
	return out
}
