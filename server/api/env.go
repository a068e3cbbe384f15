package api

import (
	"cupola/server/control/apps"
	"cupola/store/cf"
)

func showAppVars(c *call) (*response, error) {
	app, err := visibleEnv(c)
	if err != nil {
		return nil, err
	}
	if err := apps.VarsShown(c.Session, app); err != nil {
		return nil, err
	}
	return ok(viewVars(c, app))
}

// visibleEnv is the app of {guid}, unless the operator wants its variables hidden.
func visibleEnv(c *call) (*cf.App, error) {
	app, err := findApp(c)
	if err == nil {
		err = c.Feature("env_var_visibility")
	}
	if err == nil {
		err = c.Feature("space_developer_env_var_visibility")
	}
	return app, err
}

func viewVars(c *call, app *cf.App) doc {
	return doc{"var": orEmpty(app.Env), "links": doc{
		"self": c.link("/v3/apps/%s/environment_variables", app.GUID), "app": c.link("/v3/apps/%s", app.GUID)}}
}

// showAppEnv is all the environment of an app.
func showAppEnv(c *call) (*response, error) {
	app, err := visibleEnv(c)
	if err != nil {
		return nil, err
	}
	if err := apps.EnvShown(c.Session, app); err != nil {
		return nil, err
	}
	e, err := apps.EnvOf(c.Session, app)
	if err != nil {
		return nil, err
	}
	place, err := c.PlaceOf(app)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(commandReader, place) {
		e.System = doc{"redacted_message": concealed}
	}
	return ok(doc{"environment_variables": orEmpty(app.Env), "staging_env_json": e.Staging, "running_env_json": e.Running,
		"system_env_json": e.System, "application_env_json": doc{"VCAP_APPLICATION": e.Application}})
}

func showEnvGroup(c *call) (*response, error) {
	name := c.param("name")
	if !apps.IsEnvGroup(name) {
		return nil, cf.Errorf(cf.ResourceNotFound, "Environment variable group not found")
	}
	g, err := apps.EnvGroup(c.Session, name)
	if err != nil {
		return nil, err
	}
	return ok(doc{"name": name, "var": g.Vars, "updated_at": stampOrNil(g.UpdatedAt), "links": doc{"self": c.link("/v3/environment_variable_groups/%s", name)}})
}

func updateEnvGroup(c *call) (*response, error) {
	var req apps.EnvChange
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	if err := apps.ChangeEnvGroup(c.Session, c.param("name"), req); err != nil {
		return nil, err
	}
	return showEnvGroup(c)
}
