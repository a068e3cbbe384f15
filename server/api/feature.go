package api

import (
	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

// everywhere is the place of what is in no org, and platformReader who may see
// what concerns all orgs.
var everywhere = authz.Place{}

const platformReader = authz.AdminReadOnly | authz.GlobalAuditor

type featureRequest struct {
	Enabled opt[bool] `json:"enabled"`
}

func (r featureRequest) validate() []string {
	return must(r.Enabled.Set && !r.Enabled.Null, "Enabled must be a boolean")
}

// appFeature is a feature of apps; on gives where an app keeps it, nil for one
// that no app can have yet.
type appFeature struct {
	name, description string
	rule              authz.Rule // who may change it
	on                func(*cf.App) *bool
}

var appFeatures = []appFeature{
	{"ssh", "Enable SSHing into the app.", authz.SpaceDeveloper, func(a *cf.App) *bool { return &a.SSHEnabled }},
	{"revisions", "Enable versioning of an application", authz.SpaceOperator, func(a *cf.App) *bool { return &a.RevisionsOn }},
	{"service-binding-k8s", "Enable k8s service bindings for the app", authz.SpaceDeveloper, nil},
	{"file-based-vcap-services", "Enable file-based VCAP service bindings for the app", authz.SpaceDeveloper, nil},
}

func (f appFeature) view(a *cf.App) doc {
	return doc{"name": f.name, "description": f.description, "enabled": f.on != nil && *f.on(a)}
}

func featureNotFound() error { return cf.Errorf(cf.ResourceNotFound, "Feature not found") }

func findFeature(name string) (appFeature, error) {
	for _, f := range appFeatures {
		if f.name == name {
			return f, nil
		}
	}
	return appFeature{}, featureNotFound()
}

func listAppFeatures(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	list := []doc{}
	for _, f := range appFeatures {
		list = append(list, f.view(app))
	}
	self := c.link("/v3/apps/%s/features", app.GUID)
	return ok(doc{"resources": list, "pagination": doc{"total_results": len(list), "total_pages": 1, "first": self, "last": self, "next": nil, "previous": nil}})
}

func showAppFeature(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	f, err := findFeature(c.param("name"))
	if err != nil {
		return nil, err
	}
	return ok(f.view(app))
}

func updateAppFeature(c *call) (*response, error) {
	var req featureRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	f, err := findFeature(c.param("name"))
	if err != nil {
		return nil, err
	}
	place, err := c.placeOf(app)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(f.rule, place) {
		return nil, notAuthorized()
	}
	if err := c.setFeature(app, f, req.Enabled.V); err != nil {
		return nil, err
	}
	return ok(f.view(app))
}

func (c *call) setFeature(app *cf.App, f appFeature, on bool) error {
	if f.on == nil {
		if on {
			return cf.Unprocessable("The app feature '%s' is not available here", f.name)
		}
		return nil
	}
	*f.on(app) = on
	if err := c.saveApp(app); err != nil {
		return err
	}
	return c.appEvent("audit.app.update", app, doc{"request": doc{"feature": f.name, "enabled": on}})
}

// showSSHEnabled tells whether `cf ssh` reaches an app, and if not why.
func showSSHEnabled(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	space, err := store.Spaces.Get(c.Tx, app.SpaceGUID)
	if err != nil {
		return nil, err
	}
	reason := ""
	switch {
	case c.s.SSH.Address == "":
		reason = "ssh is disabled globally"
	case !space.AllowSSH:
		reason = "ssh is disabled for space '" + space.Name + "'"
	case !app.SSHEnabled:
		reason = "ssh is disabled for app"
	}
	return ok(doc{"enabled": reason == "", "reason": reason})
}

func showAppPermissions(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	place, err := c.placeOf(app)
	return &response{body: doc{"read_basic_data": true, "read_sensitive_data": c.Actor.May(commandReader, place)}}, err
}

func viewSpaceSSH(s *cf.Space) doc {
	return doc{"name": "ssh", "description": "Enable SSHing into apps in the space.", "enabled": s.AllowSSH}
}

func listSpaceFeatures(c *call) (*response, error) {
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	return ok(doc{"resources": []doc{viewSpaceSSH(s)}})
}

// spaceFeature is the space of {guid}, when {name} is a feature of spaces.
func (c *call) spaceFeature() (*cf.Space, error) {
	s, err := c.space()
	if err == nil && c.param("name") != "ssh" {
		err = featureNotFound()
	}
	return s, err
}

func showSpaceFeature(c *call) (*response, error) {
	s, err := c.spaceFeature()
	if err != nil {
		return nil, err
	}
	return ok(viewSpaceSSH(s))
}

func updateSpaceFeature(c *call) (*response, error) {
	var req featureRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s, err := c.spaceFeature()
	if err != nil {
		return nil, err
	}
	s.AllowSSH = req.Enabled.V
	if err := store.Spaces.Update(c.Tx, s); err != nil {
		return nil, err
	}
	return ok(viewSpaceSSH(s))
}
