package apps

import (
	"encoding/json"
	"fmt"
	"strings"

	"cupola/server/bindings"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/services"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// PatchEnv sets the variables that have a value and removes those that are
// null, or says which name cannot be one.
func PatchEnv(env map[string]string, p map[string]*any) (map[string]string, error) {
	out := map[string]string{}
	for k, v := range env {
		out[k] = v
	}
	for k, v := range p {
		if err := checkEnvName(k); err != nil {
			return nil, err
		}
		if v == nil || *v == nil {
			delete(out, k)
			continue
		}
		text, err := envText(k, *v)
		if err != nil {
			return nil, err
		}
		out[k] = text
	}
	return out, envFits(out)
}

// Limits of an app's variables, in bytes: Linux executes nothing with a longer
// one (MAX_ARG_STRLEN), or with more than a quarter of the stack in sum.
const (
	maxVariable = 128<<10 - 1
	maxEnv      = 512 << 10
)

func envFits(env map[string]string) error {
	sum := 0
	for k, v := range env {
		n := len(k) + len("=") + len(v)
		if n >= maxVariable {
			return cf.Unprocessable("Environment variable '%.100s' is too long: %d bytes with its name; at most %d are accepted", k, n, maxVariable-1)
		}
		sum += n
	}
	if sum > maxEnv {
		return cf.Unprocessable("Environment variables are too large: %d bytes; at most %d are accepted", sum, maxEnv)
	}
	return nil
}

func checkEnvName(k string) error {
	switch {
	case k == "":
		return cf.Unprocessable("Environment variables key must be a minimum length of 1")
	case strings.HasPrefix(k, "VCAP_"):
		return cf.Unprocessable("Environment variables cannot start with 'VCAP_'")
	case strings.HasPrefix(k, "VMC_"):
		return cf.Unprocessable("Environment variables cannot start with 'VMC_'")
	case k == "PORT":
		return cf.Unprocessable("Environment variables cannot set PORT")
	case strings.ContainsAny(k, "=\x00"):
		return cf.Unprocessable("Environment variables key '%s' cannot contain '='", k)
	}
	return nil
}

// envText is a variable's value as text: Cloud Controller takes numbers and
// booleans too.
func envText(k string, v any) (string, error) {
	switch x := v.(type) {
	case string:
		if strings.Contains(x, "\x00") {
			return "", cf.Unprocessable("Non-string value in environment variable for key '%s', value '%s'", k, "with a null byte")
		}
		return x, nil
	case bool, float64, int, int64:
		b, err := json.Marshal(x)
		return string(b), err
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = fmt.Append(nil, v)
	}
	return "", cf.Unprocessable("Non-string value in environment variable for key '%s', value '%s'", k, text)
}

// EnvChange is a change of variables; null removes one.
type EnvChange struct {
	Var map[string]*any `json:"var"`
}

// ChangeEnv changes the variables of an app.
func ChangeEnv(c *control.Session, app *cf.App, req EnvChange) (err error) {
	if app.Env, err = PatchEnv(app.Env, req.Var); err != nil {
		return err
	}
	if err := Save(c, app); err != nil {
		return err
	}
	return EnvChanged(c, app)
}

// EnvChanged records that the variables of an app were changed.
func EnvChanged(c *control.Session, app *cf.App) error {
	return c.AuditApp(audit.AppUpdate, app, c.Request(audit.Data{"environment_variables": audit.Hidden}))
}

// VarsShown records that the variables of an app were shown.
func VarsShown(c *control.Session, app *cf.App) error { return c.AuditApp(audit.AppVarsShow, app, nil) }

// EnvShown records that the environment of an app was shown.
func EnvShown(c *control.Session, app *cf.App) error { return c.AuditApp(audit.AppEnvShow, app, nil) }

// IsEnvGroup reports whether there is a group of variables of that name.
func IsEnvGroup(name string) bool { return name == "running" || name == "staging" }

// EnvGroup is the group of variables of that name, which all apps have; never nil.
func EnvGroup(c *control.Session, name string) (*cf.EnvGroup, error) {
	g, err := store.EnvGroups.Get(c.Tx, name)
	if err != nil {
		g = &cf.EnvGroup{Name: name}
	}
	if g.Vars == nil {
		g.Vars = map[string]string{}
	}
	return g, control.IfFound(err)
}

// ChangeEnvGroup changes a group of variables.
func ChangeEnvGroup(c *control.Session, name string, req EnvChange) error {
	if !IsEnvGroup(name) {
		return cf.Errorf(cf.ResourceNotFound, "Environment variable group not found")
	}
	g, err := EnvGroup(c, name)
	if err != nil {
		return err
	}
	if g.Vars, err = PatchEnv(g.Vars, req.Var); err != nil {
		return err
	}
	g.UpdatedAt = c.Tx.Now
	return store.EnvGroups.Put(c.Tx, g)
}

// Env is what an app's processes have besides its own variables.
type Env struct {
	Running, Staging map[string]string
	Application      any            // VCAP_APPLICATION of its web process
	System           map[string]any // what the platform says of its services
}

// EnvOf returns the current environment of an app.
func EnvOf(c *control.Session, app *cf.App) (e Env, err error) {
	running, err := EnvGroup(c, "running")
	if err != nil {
		return e, err
	}
	staging, err := EnvGroup(c, "staging")
	if err != nil {
		return e, err
	}
	e.Running, e.Staging = running.Vars, staging.Vars
	if e.Application, err = vcapApplication(c, app); err != nil {
		return e, err
	}
	list, err := services.BoundTo(c, app)
	if form := bindings.Form(app.BindingForm); form != bindings.FormNone {
		e.System = map[string]any{form.Variable().Name: form.Variable().Value}
	} else {
		e.System = map[string]any{"VCAP_SERVICES": json.RawMessage(desire.VCAPServices(list))}
	}
	return e, err
}

// vcapApplication is VCAP_APPLICATION as the app's web process gets it.
func vcapApplication(c *control.Session, app *cf.App) (any, error) {
	o, err := ownerOf(c, app)
	if err != nil {
		return nil, err
	}
	web, err := Process(c, app, "web")
	if store.IsNotFound(err) {
		return desire.VCAPApplication(o, defaultMemoryMB, defaultDiskMB), nil
	}
	if err != nil {
		return nil, err
	}
	return desire.VCAPApplication(o, web.MemoryMB, web.DiskMB), nil
}

// ownerOf is an app with where it is, and the URIs of its routes.
func ownerOf(c *control.Session, app *cf.App) (o desire.Owner, err error) {
	o.App, o.Platform = app, desire.Platform{API: c.Platform.URL}
	if o.Space, err = store.Spaces.Get(c.Tx, app.SpaceGUID); err != nil {
		return o, err
	}
	if o.Org, err = store.Orgs.Get(c.Tx, o.Space.OrgGUID); err != nil {
		return o, err
	}
	routes, err := store.Routes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return o, err
	}
	for _, r := range routes {
		d, err := store.Domains.Get(c.Tx, r.DomainGUID)
		if err != nil {
			return o, err
		}
		o.URIs = append(o.URIs, desire.URI(r, d))
	}
	return o, nil
}
