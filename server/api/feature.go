package api

import (
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/change"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

type featureRequest struct {
	Enabled change.Field[bool] `json:"enabled"`
}

func (r featureRequest) Validate() []string {
	return control.Must(r.Enabled.Set && !r.Enabled.Null, "Enabled must be a boolean")
}

func viewAppFeature(f apps.Feature, a *cf.App) doc {
	return doc{"name": f.Name, "description": f.Description, "enabled": f.On(a)}
}

func listAppFeatures(c *call) (*response, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	list := []doc{}
	for _, f := range apps.Features {
		list = append(list, viewAppFeature(f, app))
	}
	self := c.link("/v3/apps/%s/features", app.GUID)
	return ok(doc{"resources": list, "pagination": doc{"total_results": len(list), "total_pages": 1, "first": self, "last": self, "next": nil, "previous": nil}})
}

func showAppFeature(c *call) (*response, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	f, err := apps.FindFeature(c.param("name"))
	if err != nil {
		return nil, err
	}
	return ok(viewAppFeature(f, app))
}

func updateAppFeature(c *call) (*response, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	if err := apps.MayFeature(c.Session, app, c.param("name")); err != nil {
		return nil, err
	}
	var req featureRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	f, err := apps.SetFeature(c.Session, app, c.param("name"), req.Enabled.V)
	if err != nil {
		return nil, err
	}
	return ok(viewAppFeature(f, app))
}

// showSSHEnabled reports whether `cf ssh` reaches an app, and if not why.
func showSSHEnabled(c *call) (*response, error) {
	app, err := findApp(c)
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
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	place, err := c.PlaceOf(app)
	return &response{body: doc{"read_basic_data": true, "read_sensitive_data": c.Actor.May(commandReader, place)}}, err
}

func viewSpaceSSH(_ *call, s *cf.Space) doc {
	return doc{"name": "ssh", "description": "Enable SSHing into apps in the space.", "enabled": s.AllowSSH}
}

func listSpaceFeatures(c *call) (*response, error) {
	s, err := findSpace(c)
	if err != nil {
		return nil, err
	}
	return ok(doc{"resources": []doc{viewSpaceSSH(c, s)}})
}

// findSpaceFeature finds the space of {guid}, when {name} is a feature of spaces.
func findSpaceFeature(c *call) (*cf.Space, error) {
	s, err := findSpace(c)
	if err == nil && c.param("name") != "ssh" {
		err = apps.FeatureNotFound()
	}
	return s, err
}

func setSpaceFeature(c *control.Session, s *cf.Space, req featureRequest) error {
	return orgs.AllowSSH(c, s, req.Enabled.V)
}
