package api

import (
	"slices"

	"cupola/server/authz"
	"cupola/server/bindings"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

type featureRequest struct {
	Enabled change.Field[bool] `json:"enabled"`
}

func (r featureRequest) Validate() []string {
	return control.Must(r.Enabled.Set && !r.Enabled.Null, "Enabled must be a boolean")
}

// appFeature is a feature of apps.
type appFeature struct {
	name, description string
	rule              authz.Rule          // who may change it
	flag              func(*cf.App) *bool // where an app keeps it; nil for a form of bindings
}

// appFeatures are Cloud Controller's, and the one that RFC-0030 adds.
var appFeatures = []appFeature{
	{"ssh", "Enable SSHing into the app.", authz.SpaceDeveloper, func(a *cf.App) *bool { return &a.SSHEnabled }},
	{"revisions", "Enable versioning of an application", authz.SpaceOperator, func(a *cf.App) *bool { return &a.RevisionsOn }},
	{string(bindings.FormK8s), "Enable k8s service bindings for the app", authz.SpaceDeveloper, nil},
	{string(bindings.FormVCAP), "Enable file-based VCAP service bindings for the app", authz.SpaceDeveloper, nil},
	{string(bindings.FormServiceBindingIO), "Enable file-based service bindings of RFC-0030 for the app", authz.SpaceDeveloper, nil},
}

// on tells whether an app has the feature.
func (f appFeature) on(a *cf.App) bool {
	if f.flag != nil {
		return *f.flag(a)
	}
	return a.BindingForm == f.name
}

// set turns the feature on or off. An app has one form of bindings.
func (f appFeature) set(a *cf.App, on bool) error {
	switch {
	case f.flag != nil:
		*f.flag(a) = on
	case on && a.BindingForm != "" && a.BindingForm != f.name:
		two := []string{a.BindingForm, f.name}
		slices.Sort(two)
		return cf.Unprocessable("'%s' and '%s' features cannot be enabled at the same time.", two[0], two[1])
	case on:
		a.BindingForm = f.name
	case a.BindingForm == f.name:
		a.BindingForm = ""
	}
	return nil
}

// setFeatures sets what a manifest names. What it turns off goes first, so that
// it can change one form of bindings for another.
func setFeatures(a *cf.App, want map[string]bool) error {
	for _, on := range []bool{false, true} {
		for _, f := range appFeatures {
			if v, given := want[f.name]; given && v == on {
				if err := f.set(a, on); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (f appFeature) view(a *cf.App) doc {
	return doc{"name": f.name, "description": f.description, "enabled": f.on(a)}
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
	place, err := c.PlaceOf(app)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(f.rule, place) {
		return nil, access.NotAuthorized()
	}
	if err := c.setFeature(app, f, req.Enabled.V); err != nil {
		return nil, err
	}
	return ok(f.view(app))
}

func (c *call) setFeature(app *cf.App, f appFeature, on bool) error {
	form := app.BindingForm
	if err := f.set(app, on); err != nil {
		return err
	}
	if err := services.FormFits(c.Session, app, form); err != nil {
		return err
	}
	if err := c.saveApp(app); err != nil {
		return err
	}
	return c.AuditApp(audit.AppUpdate, app, doc{"request": doc{"feature": f.name, "enabled": on}})
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
	place, err := c.PlaceOf(app)
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
