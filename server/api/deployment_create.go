package api

import (
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/services"
	"cupola/store/cf"
)

// createDeployment begins to replace what an app's web process runs. For an app
// that is stopped there is nothing to replace: it is started.
func createDeployment(c *call) (*response, error) {
	var req deploymentRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	c.Checked = true
	app, err := c.App(req.Relationships.App.guid())
	if control.IsKind(err, cf.ResourceNotFound) || control.IsKind(err, cf.NotAuthorized) {
		err = cf.Unprocessable("Unable to use app. Ensure that the app exists and you have access to it.")
	}
	if err != nil {
		return nil, err
	}
	if req.Revision != nil && !app.RevisionsOn {
		return nil, cf.Unprocessable("Cannot create deployment from a revision for an app without revisions enabled")
	}
	if err := services.Fit(c.Session, app, services.TheApp); err != nil {
		return nil, err
	}
	d := &cf.Deployment{AppGUID: app.GUID, Strategy: req.strategy(), Options: req.options, PreviousDroplet: app.DropletGUID}
	if d.Strategy == cf.Canary {
		d.CanaryStep = 1
	}
	if err := req.Metadata.Apply(&d.Metadata); err != nil {
		return nil, err
	}
	if err := apps.Deploy(c.Session, app, d, req.target()); err != nil {
		return nil, err
	}
	return created(viewDeployment(c, d))
}
