package api

import (
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

type envRequest struct {
	Var map[string]*any `json:"var"`
}

func showAppVars(c *call) (*response, error) {
	app, err := c.app()
	if err == nil {
		err = c.envVisible()
	}
	if err != nil {
		return nil, err
	}
	return ok(viewVars(c, app))
}

// envVisible refuses to show variables when the operator wants them hidden.
func (c *call) envVisible() error {
	if err := c.Feature("env_var_visibility"); err != nil {
		return err
	}
	return c.Feature("space_developer_env_var_visibility")
}

func viewVars(c *call, app *cf.App) doc {
	return doc{"var": orEmpty(app.Env), "links": doc{
		"self": c.link("/v3/apps/%s/environment_variables", app.GUID), "app": c.link("/v3/apps/%s", app.GUID)}}
}

func updateAppVars(c *call) (*response, error) {
	var req envRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	if app.Env, err = apps.PatchEnv(app.Env, req.Var); err != nil {
		return nil, err
	}
	if err := apps.Save(c.Session, app); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppUpdate, app, doc{"request": doc{"environment_variables": "[PRIVATE DATA HIDDEN]"}}); err != nil {
		return nil, err
	}
	return ok(viewVars(c, app))
}

// showAppEnv is all the environment of an app.
func showAppEnv(c *call) (*response, error) {
	app, err := c.app()
	if err == nil {
		err = c.envVisible()
	}
	if err != nil {
		return nil, err
	}
	running, err := c.envGroup("running")
	if err != nil {
		return nil, err
	}
	staging, err := c.envGroup("staging")
	if err != nil {
		return nil, err
	}
	vcap, err := c.vcapApplication(app)
	if err != nil {
		return nil, err
	}
	place, err := c.PlaceOf(app)
	if err != nil {
		return nil, err
	}
	system, err := c.systemEnv(app)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(commandReader, place) {
		system = doc{"redacted_message": "[PRIVATE DATA HIDDEN]"}
	}
	return ok(doc{"environment_variables": orEmpty(app.Env), "staging_env_json": staging, "running_env_json": running,
		"system_env_json": system, "application_env_json": doc{"VCAP_APPLICATION": vcap}})
}

func (c *call) envGroup(name string) (map[string]string, error) {
	g, err := store.EnvGroups.Get(c.Tx, name)
	if store.IsNotFound(err) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	return orEmpty(g.Vars), nil
}

func showEnvGroup(c *call) (*response, error) {
	name := c.param("name")
	if name != "running" && name != "staging" {
		return nil, cf.Errorf(cf.ResourceNotFound, "Environment variable group not found")
	}
	vars, err := c.envGroup(name)
	if err != nil {
		return nil, err
	}
	return ok(doc{"name": name, "var": vars, "updated_at": nil, "links": doc{"self": c.link("/v3/environment_variable_groups/%s", name)}})
}

func updateEnvGroup(c *call) (*response, error) {
	var req envRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	vars, err := c.envGroup(c.param("name"))
	if err != nil {
		return nil, err
	}
	if vars, err = apps.PatchEnv(vars, req.Var); err != nil {
		return nil, err
	}
	if err := store.EnvGroups.Put(c.Tx, &cf.EnvGroup{Name: c.param("name"), Vars: vars}); err != nil {
		return nil, err
	}
	return showEnvGroup(c)
}

// vcapApplication is VCAP_APPLICATION as the app's web process gets it.
func (c *call) vcapApplication(app *cf.App) (any, error) {
	o := desire.Owner{App: app, Platform: desire.Platform{API: c.Platform.URL}}
	var err error
	if o.Space, err = store.Spaces.Get(c.Tx, app.SpaceGUID); err != nil {
		return nil, err
	}
	if o.Org, err = store.Orgs.Get(c.Tx, o.Space.OrgGUID); err != nil {
		return nil, err
	}
	routes, err := store.Routes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		d, err := store.Domains.Get(c.Tx, r.DomainGUID)
		if err != nil {
			return nil, err
		}
		o.URIs = append(o.URIs, desire.URI(r, d))
	}
	web, err := apps.Process(c.Session, app, "web")
	if store.IsNotFound(err) {
		return desire.VCAPApplication(o, apps.DefaultMemoryMB, apps.DefaultDiskMB), nil
	}
	if err != nil {
		return nil, err
	}
	return desire.VCAPApplication(o, web.MemoryMB, web.DiskMB), nil
}
