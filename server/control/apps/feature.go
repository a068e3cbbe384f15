package apps

import (
	"slices"

	"cupola/server/authz"
	"cupola/server/bindings"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/services"
	"cupola/store/cf"
)

// Feature is a feature of apps.
type Feature struct {
	Name, Description string
	Rule              authz.Rule          // who may change it
	flag              func(*cf.App) *bool // where an app keeps it; nil for a form of bindings
}

// Features are Cloud Controller's, and the one that RFC-0030 adds.
var Features = []Feature{
	{"ssh", "Enable SSHing into the app.", authz.SpaceDeveloper, func(a *cf.App) *bool { return &a.SSHEnabled }},
	{"revisions", "Enable versioning of an application", authz.SpaceOperator, func(a *cf.App) *bool { return &a.RevisionsOn }},
	{string(bindings.FormK8s), "Enable k8s service bindings for the app", authz.SpaceDeveloper, nil},
	{string(bindings.FormVCAP), "Enable file-based VCAP service bindings for the app", authz.SpaceDeveloper, nil},
	{string(bindings.FormServiceBindingIO), "Enable file-based service bindings of RFC-0030 for the app", authz.SpaceDeveloper, nil},
}

// On reports whether an app has the feature.
func (f Feature) On(a *cf.App) bool {
	if f.flag != nil {
		return *f.flag(a)
	}
	return a.BindingForm == f.Name
}

// set turns the feature on or off. An app has one form of bindings.
func (f Feature) set(a *cf.App, on bool) error {
	switch {
	case f.flag != nil:
		*f.flag(a) = on
	case on && a.BindingForm != "" && a.BindingForm != f.Name:
		two := []string{a.BindingForm, f.Name}
		slices.Sort(two)
		return cf.Unprocessable("'%s' and '%s' features cannot be enabled at the same time.", two[0], two[1])
	case on:
		a.BindingForm = f.Name
	case a.BindingForm == f.Name:
		a.BindingForm = ""
	}
	return nil
}

// SetFeatures sets what a manifest names. What it turns off goes first, so that
// it can change one form of bindings for another.
func SetFeatures(a *cf.App, want map[string]bool) error {
	for _, on := range []bool{false, true} {
		for _, f := range Features {
			if v, given := want[f.Name]; given && v == on {
				if err := f.set(a, on); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// FeatureNotFound is the error for an unknown feature.
func FeatureNotFound() error { return cf.Errorf(cf.ResourceNotFound, "Feature not found") }

// FindFeature returns the feature of a name.
func FindFeature(name string) (Feature, error) {
	for _, f := range Features {
		if f.Name == name {
			return f, nil
		}
	}
	return Feature{}, FeatureNotFound()
}

// MayFeature checks that there is a feature of a name, and that the actor may turn it
// on and off.
func MayFeature(c *control.Session, app *cf.App, name string) error {
	f, err := FindFeature(name)
	if err != nil {
		return err
	}
	place, err := c.PlaceOf(app)
	if err == nil && !c.Actor.May(f.Rule, place) {
		err = access.NotAuthorized()
	}
	return err
}

// SetFeature turns a feature of an app on or off.
func SetFeature(c *control.Session, app *cf.App, name string, on bool) (f Feature, err error) {
	if err := MayFeature(c, app, name); err != nil {
		return f, err
	}
	if f, err = FindFeature(name); err != nil {
		return f, err
	}
	form := app.BindingForm
	if err := f.set(app, on); err != nil {
		return f, err
	}
	if err := services.FormFits(c, app, form); err != nil {
		return f, err
	}
	if err := Save(c, app); err != nil {
		return f, err
	}
	return f, nil
}
