package api

import (
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/deletion"
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
	Lifecycle     *apps.Lifecycle               `json:"lifecycle"`
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
	if app.Env, err = apps.PatchEnv(nil, req.Env.V); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&app.Metadata); err != nil {
		return nil, err
	}
	if err := apps.Insert(c.Session, app, req.Lifecycle); err != nil {
		return nil, err
	}
	return created(viewApp(c, app))
}

func updateApp(c *call) (*response, error) {
	var req struct {
		Name      change.Field[string] `json:"name"`
		Lifecycle *apps.Lifecycle      `json:"lifecycle"`
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
	if err := apps.ChangeLifecycle(c.Session, app, req.Lifecycle); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&app.Metadata); err != nil {
		return nil, err
	}
	if err := apps.Save(c.Session, app); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppUpdate, app, doc{"request": doc{"name": app.Name}}); err != nil {
		return nil, err
	}
	return ok(viewApp(c, app))
}

func deleteApp(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	return c.deletes(deletion.App, "apps", app.GUID)
}

func startApp(c *call) (*response, error) {
	return c.changeState(func(a *cf.App) error { return apps.Start(c.Session, a) })
}
func stopApp(c *call) (*response, error) {
	return c.changeState(func(a *cf.App) error { return apps.Stop(c.Session, a) })
}
func restartApp(c *call) (*response, error) {
	return c.changeState(func(a *cf.App) error { return apps.Restart(c.Session, a) })
}

func (c *call) changeState(change func(*cf.App) error) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	if err := change(app); err != nil {
		return nil, err
	}
	return ok(viewApp(c, app))
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
	if err := apps.NotDeploying(c.Session, app, apps.NoDroplet); err != nil {
		return nil, err
	}
	if err := apps.AssignDroplet(c.Session, app, req.guid()); err != nil {
		return nil, err
	}
	return ok(doc{"data": doc{"guid": app.DropletGUID}, "links": doc{
		"self":    c.link("/v3/apps/%s/relationships/current_droplet", app.GUID),
		"related": c.link("/v3/apps/%s/droplets/current", app.GUID)}})
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
