package api

import (
	"errors"
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/quota"
	"cupola/server/control/services"
	"cupola/server/deploy"
	"cupola/server/desire"
	"cupola/store"
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
	if err := c.deploy(app, d, &req); err != nil {
		return nil, err
	}
	return created(viewDeployment(c, d))
}

// deploy makes the deployment of what the request names.
func (c *call) deploy(app *cf.App, d *cf.Deployment, req *deploymentRequest) error {
	r, err := c.target(app, d, req)
	if err != nil {
		return err
	}
	if r != nil {
		d.RevisionGUID, d.RevisionVersion = r.GUID, r.Version
	}
	web, err := c.webProcesses(app)
	if err != nil {
		return err
	}
	if len(web) == 0 {
		return cf.Unprocessable("App has no web process")
	}
	before, err := c.Tx.ActiveDeployment(app.GUID)
	if store.IsNotFound(err) {
		before, err = nil, nil
	}
	if err != nil {
		return err
	}
	d.OriginalInstances = web[0].Instances
	if before != nil {
		d.OriginalInstances = before.OriginalInstances
	}
	newest := web[len(web)-1]
	if app.State == cf.Stopped {
		err = c.deployStopped(app, d, newest, req.scale)
	} else {
		err = aboutQuota(c.replace(app, d, deployed{newest, before, r, req.scale}), c, app)
	}
	if err != nil {
		return err
	}
	return c.deploymentEvent(app, d, req)
}

func (c *call) deploymentEvent(app *cf.App, d *cf.Deployment, req *deploymentRequest) error {
	c.Note(app, "Creating deployment for app with guid %s", app.GUID)
	request := doc{"strategy": d.Strategy, "options": viewDeploymentOptions(d), "relationships": doc{"app": toOne(app.GUID)}}
	data := doc{"deployment_guid": d.GUID, "droplet_guid": d.DropletGUID, "type": nil, "revision_guid": control.OrNil(d.RevisionGUID), "strategy": d.Strategy, "request": request}
	if req.Droplet != nil {
		request["droplet"] = doc{"guid": req.Droplet.GUID}
	}
	if req.Revision != nil {
		data["type"], request["revision"] = "rollback", doc{"guid": req.Revision.GUID}
	}
	return c.AuditApp(audit.AppDeploymentCreate, app, data)
}

// target gives the app the droplet that is deployed, with what else a rollback
// brings back, and the revision that this makes, which is nil where an app has
// none.
func (c *call) target(app *cf.App, d *cf.Deployment, req *deploymentRequest) (*cf.Revision, error) {
	var to *cf.Revision
	d.DropletGUID = req.Droplet.guid()
	switch {
	case req.Revision != nil:
		var err error
		if to, err = c.rollbackTarget(app, req.Revision.guid()); err != nil {
			return nil, err
		}
		d.DropletGUID = to.DropletGUID
	case req.Droplet == nil && app.DropletGUID == "":
		return nil, cf.Unprocessable("Invalid droplet. Please specify a droplet in the request or set a current droplet for the app.")
	case req.Droplet == nil:
		d.DropletGUID = app.DropletGUID
	}
	if to != nil {
		if err := c.applySidecarsOf(app, to); err != nil {
			return nil, err
		}
		app.Env = to.Env
	}
	if err := c.assignDroplet(app, d.DropletGUID); err != nil {
		return nil, err
	}
	if to != nil {
		return c.rollBack(app, to)
	}
	return c.revise(app)
}

func (c *call) rollbackTarget(app *cf.App, guid string) (*cf.Revision, error) {
	r, err := store.Revisions.Get(c.Tx, guid)
	if store.IsNotFound(err) || err == nil && r.AppGUID != app.GUID {
		return nil, cf.Unprocessable("The revision does not exist")
	}
	if err != nil {
		return nil, err
	}
	d, err := store.Droplets.Get(c.Tx, r.DropletGUID)
	if store.IsNotFound(err) || err == nil && d.State == cf.DropletExpired {
		return nil, cf.Unprocessable("Unable to deploy this revision, the droplet for this revision no longer exists.")
	}
	return r, err
}

// deployed is what a deployment begins with.
type deployed struct {
	like     *cf.Process    // the newest web process
	before   *cf.Deployment // under way; nil: none
	revision *cf.Revision   // to run; nil: the app has none
	scale    scaleRequest
}

// replace begins a deployment of an app that runs, if the quota allows it.
func (c *call) replace(app *cf.App, d *cf.Deployment, with deployed) error {
	if err := c.wouldFit(app, *with.like, with.scale); err != nil {
		return err
	}
	placement, err := c.Tx.PlacementOf(app.SpaceGUID)
	if err != nil {
		return err
	}
	list, err := services.BoundTo(c.Session, app)
	if err != nil {
		return err
	}
	with.like.Placement, with.like.Services = placement, desire.StartedWith(list)
	return quota.Within(c.Tx, app.SpaceGUID, quota.Processes, func() error { return c.deployBeside(d, with) })
}

// wouldFit says whether the web process could be what the deployment is to make
// of it, were there no other.
func (c *call) wouldFit(app *cf.App, web cf.Process, scale scaleRequest) error {
	was := web
	if err := scale.apply(&web); err != nil {
		return err
	}
	if err := quota.Within(c.Tx, app.SpaceGUID, quota.Processes, func() error { return store.Processes.Update(c.Tx, &web) }); err != nil {
		return err
	}
	return store.Processes.Update(c.Tx, &was)
}

// deployStopped starts an app with the newest of its web processes.
func (c *call) deployStopped(app *cf.App, d *cf.Deployment, web *cf.Process, scale scaleRequest) error {
	if err := scale.apply(web); err != nil {
		return err
	}
	if err := store.Processes.Update(c.Tx, web); err != nil {
		return err
	}
	if err := c.startAs(app); err != nil {
		return err
	}
	d.Become(cf.Deployed, string(cf.Deployed), c.Tx.Now)
	return store.Deployments.Insert(c.Tx, d)
}

// deployBeside adds a web process like the newest one, that the deployment is
// to scale up, and ends the deployment before.
func (c *call) deployBeside(d *cf.Deployment, with deployed) error {
	p := *with.like
	p.Resource, p.Rev, p.DropletGUID, p.RevisionGUID = cf.Resource{}, 0, d.DropletGUID, d.RevisionGUID
	p.Sidecars = slices.Clone(p.Sidecars)
	if with.revision != nil {
		p.Command = with.revision.Commands["web"]
	}
	if err := with.scale.apply(&p); err != nil {
		return err
	}
	p.Instances = deploy.FirstInstances(d)
	if err := store.Processes.Insert(c.Tx, &p); err != nil {
		return err
	}
	d.WebProcess, d.NewProcesses = p.GUID, []cf.DeploymentProcess{{GUID: p.GUID, Type: p.Type}}
	if before := with.before; before != nil {
		ended := cf.Canceled
		if before.State == cf.Deploying {
			ended = cf.Deployed
		}
		before.Become(ended, cf.Superseded, c.Tx.Now)
		if err := store.Deployments.Update(c.Tx, before); err != nil {
			return err
		}
	}
	state := cf.Deploying
	if d.Strategy == cf.Canary {
		state = cf.Prepaused
	}
	d.Become(state, string(cf.Deploying), c.Tx.Now)
	return store.Deployments.Insert(c.Tx, d)
}

// aboutQuota adds Cloud Controller's explanation to a quota that is too small.
func aboutQuota(err error, c *call, app *cf.App) error {
	var e *cf.Error
	if !errors.As(err, &e) || !strings.Contains(e.Detail, "quota_exceeded") && !strings.Contains(e.Detail, "app_instance_limit_exceeded") {
		return err
	}
	space, err := store.Spaces.Get(c.Tx, app.SpaceGUID)
	if err != nil {
		return err
	}
	org, err := store.Orgs.Get(c.Tx, space.OrgGUID)
	if err != nil {
		return err
	}
	const small = "quota may not be large enough to support rolling deployments or your configured max-in-flight."
	if strings.Contains(e.Detail, "space_quota_exceeded") || strings.Contains(e.Detail, "space_app_instance_limit_exceeded") {
		return cf.Unprocessable("%s for space %s. This space's "+small, e.Detail, space.Name)
	}
	return cf.Unprocessable("%s for organization %s. This organization's "+small, e.Detail, org.Name)
}
