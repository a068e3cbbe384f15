package apps

import (
	"errors"
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/server/control/services"
	"cupola/server/deploy"
	"cupola/store"
	"cupola/store/cf"
)

// Options shows what was asked for.
func Options(d *cf.Deployment) audit.Data {
	o := audit.Data{"max_in_flight": d.Options.MaxInFlight}
	if d.Options.WebInstances != nil {
		o["web_instances"] = *d.Options.WebInstances
	}
	if d.Options.MemoryMB != 0 {
		o["memory_in_mb"] = d.Options.MemoryMB
	}
	if d.Options.DiskMB != 0 {
		o["disk_in_mb"] = d.Options.DiskMB
	}
	if d.Options.LogRateLimit != nil {
		o["log_rate_limit_in_bytes_per_second"] = *d.Options.LogRateLimit
	}
	if len(d.Options.Weights) > 0 {
		steps := []audit.Data{}
		for _, w := range d.Options.Weights {
			steps = append(steps, audit.Data{"instance_weight": w})
		}
		o["canary"] = audit.Data{"steps": steps}
	}
	return o
}

// CancelDeployment ends a deployment.
func CancelDeployment(c *control.Session, app *cf.App, d *cf.Deployment) error {
	if d.StatusValue != cf.Active {
		return cf.Unprocessable("Cannot cancel a deployment with status: %s and reason: %s", d.StatusValue, d.StatusReason)
	}
	if err := assignDroplet(c, app, d.PreviousDroplet); err != nil {
		return err
	}
	c.Note(app, "Cancelling deployment for app with guid %s", app.GUID)
	if err := c.AuditApp(audit.AppDeploymentCancel, app, audit.Data{"deployment_guid": d.GUID, "droplet_guid": control.OrNil(d.DropletGUID)}); err != nil {
		return err
	}
	d.Become(cf.Canceling, string(cf.Canceling), c.Tx.Now)
	return store.Deployments.Update(c.Tx, d)
}

// ContinueDeployment takes a deployment that pauses to its next step.
func ContinueDeployment(c *control.Session, app *cf.App, d *cf.Deployment) error {
	if d.State != cf.Paused {
		return cf.Unprocessable("Cannot continue a deployment with status: %s and reason: %s", d.StatusValue, d.StatusReason)
	}
	c.Note(app, "Continuing deployment for app with guid %s", app.GUID)
	if err := c.AuditApp(audit.AppDeploymentContinue, app, audit.Data{"deployment_guid": d.GUID, "droplet_guid": control.OrNil(d.DropletGUID)}); err != nil {
		return err
	}
	next := cf.Deploying
	if d.CanaryStep < len(d.Options.Weights) {
		d.CanaryStep++
		next = cf.Prepaused
	}
	d.Become(next, string(cf.Deploying), c.Tx.Now)
	return store.Deployments.Update(c.Tx, d)
}

// notDeploying refuses to change an app's web process, or what it runs, while a
// deployment does.
func notDeploying(c *control.Session, app *cf.App, format string, args ...any) error {
	d, err := store.Deployments.ActiveOf(c.Tx, app.GUID)
	if store.IsNotFound(err) || err == nil && !d.Progresses() {
		return nil
	}
	if err != nil {
		return err
	}
	return cf.Unprocessable(format, args...)
}

// Why what a deployment changes cannot be changed meanwhile.
const (
	noScale  = "Cannot scale this process while a deployment is in flight."
	NoUpdate = "Cannot update this process while a deployment is in flight."
)

// NewDeployment is a request for a deployment: of a droplet, of a revision, or of the
// app's current droplet if both are nil.
type NewDeployment struct {
	AppGUID, Strategy string
	Droplet, Revision *string
	Options           cf.DeploymentOptions
	Scale             Scale // of the new web process
	Metadata          *change.Metadata
}

// Deploy begins to replace what an app's web process runs. For an app that is
// stopped there is nothing to replace: it is started.
func Deploy(c *control.Session, req NewDeployment) (*cf.Deployment, error) {
	app, err := deployable(c, req)
	if err != nil {
		return nil, err
	}
	d := &cf.Deployment{AppGUID: app.GUID, Strategy: req.Strategy, Options: req.Options, PreviousDroplet: app.DropletGUID}
	if d.Strategy == cf.Canary {
		d.CanaryStep = 1
	}
	if err := req.Metadata.Apply(&d.Metadata); err != nil {
		return nil, err
	}
	with, err := beginWith(c, app, d, req)
	if err != nil {
		return nil, err
	}
	if app.State == cf.Stopped {
		err = deployStopped(c, app, d, with)
	} else {
		err = aboutQuota(replace(c, app, d, with), c, app)
	}
	if err != nil {
		return nil, err
	}
	return d, deploymentEvent(c, app, d, req)
}

// deployable returns the app of a deployment, if it can have one.
func deployable(c *control.Session, req NewDeployment) (*cf.App, error) {
	c.Checked = true
	app, err := c.App(req.AppGUID)
	if control.IsKind(err, cf.ResourceNotFound) || control.IsKind(err, cf.NotAuthorized) {
		err = cf.Unprocessable("Unable to use app. Ensure that the app exists and you have access to it.")
	}
	if err != nil {
		return nil, err
	}
	if req.Revision != nil && !app.RevisionsOn {
		return nil, cf.Unprocessable("Cannot create deployment from a revision for an app without revisions enabled")
	}
	return app, services.Fit(c, app, services.TheApp)
}

// beginWith sets the app's droplet and revision to the deployed ones, and records in the
// deployment what it begins with.
func beginWith(c *control.Session, app *cf.App, d *cf.Deployment, req NewDeployment) (with deployed, err error) {
	with.scale = req.Scale
	if with.revision, err = target(c, app, d, req); err != nil {
		return with, err
	}
	if with.revision != nil {
		d.RevisionGUID, d.RevisionVersion = with.revision.GUID, with.revision.Version
	}
	web, err := WebProcesses(c, app)
	if err != nil {
		return with, err
	}
	if len(web) == 0 {
		return with, cf.Unprocessable("App has no web process")
	}
	with.like, d.OriginalInstances = web[len(web)-1], web[0].Instances
	before, err := store.Deployments.ActiveOf(c.Tx, app.GUID)
	if err == nil {
		with.before, d.OriginalInstances = before, before.OriginalInstances
	}
	return with, control.IfFound(err)
}

func deploymentEvent(c *control.Session, app *cf.App, d *cf.Deployment, req NewDeployment) error {
	c.Note(app, "Creating deployment for app with guid %s", app.GUID)
	var kind any
	if req.Revision != nil {
		kind = "rollback"
	}
	return c.AuditApp(audit.AppDeploymentCreate, app, c.Request(c.Asked, "deployment_guid", d.GUID, "droplet_guid", d.DropletGUID,
		"type", kind, "revision_guid", control.OrNil(d.RevisionGUID), "strategy", d.Strategy))
}

// target gives the app the droplet that is deployed, with what else a rollback
// brings back, and the revision that this makes, which is nil where an app has
// none.
func target(c *control.Session, app *cf.App, d *cf.Deployment, req NewDeployment) (*cf.Revision, error) {
	if req.Revision != nil {
		return rollBackTo(c, app, d, *req.Revision)
	}
	d.DropletGUID = app.DropletGUID
	if req.Droplet != nil {
		d.DropletGUID = *req.Droplet
	} else if app.DropletGUID == "" {
		return nil, cf.Unprocessable("Invalid droplet. Please specify a droplet in the request or set a current droplet for the app.")
	}
	if err := assignDroplet(c, app, d.DropletGUID); err != nil {
		return nil, err
	}
	return revise(c, app)
}

// rollBackTo is target for a revision.
func rollBackTo(c *control.Session, app *cf.App, d *cf.Deployment, guid string) (*cf.Revision, error) {
	to, err := rollbackTarget(c, app, guid)
	if err != nil {
		return nil, err
	}
	d.DropletGUID = to.DropletGUID
	app.Env = to.Env
	if err := assignDroplet(c, app, d.DropletGUID); err != nil {
		return nil, err
	}
	if err := applySidecarsOf(c, app, to); err != nil {
		return nil, err
	}
	return rollBack(c, app, to)
}

func rollbackTarget(c *control.Session, app *cf.App, guid string) (*cf.Revision, error) {
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
	scale    Scale
}

// replace begins a deployment of an app that runs, if the quota allows it.
func replace(c *control.Session, app *cf.App, d *cf.Deployment, with deployed) error {
	if err := wouldFit(c, app, *with.like, with.scale); err != nil {
		return err
	}
	if err := startedWith(c, app, with.like); err != nil {
		return err
	}
	return quota.Within(c, app.SpaceGUID, quota.Processes, func() error { return addProcess(c, d, with) })
}

// wouldFit says whether the web process could be what the deployment makes
// of it, were there no other.
func wouldFit(c *control.Session, app *cf.App, web cf.Process, scale Scale) error {
	was := web
	if err := scale.Apply(&web); err != nil {
		return err
	}
	if err := quota.Within(c, app.SpaceGUID, quota.Processes, func() error { return store.Processes.Update(c.Tx, &web) }); err != nil {
		return err
	}
	return store.Processes.Update(c.Tx, &was)
}

// deployStopped starts an app with the newest of its web processes.
func deployStopped(c *control.Session, app *cf.App, d *cf.Deployment, with deployed) error {
	if err := with.scale.Apply(with.like); err != nil {
		return err
	}
	if err := store.Processes.Update(c.Tx, with.like); err != nil {
		return err
	}
	if err := startAs(c, app); err != nil {
		return err
	}
	d.Become(cf.Deployed, string(cf.Deployed), c.Tx.Now)
	return store.Deployments.Insert(c.Tx, d)
}

// addProcess adds a web process like the newest one, that the deployment is
// to scale up, and ends the deployment before.
func addProcess(c *control.Session, d *cf.Deployment, with deployed) error {
	p := *with.like
	p.Resource, p.Rev, p.DropletGUID, p.RevisionGUID = cf.Resource{}, 0, d.DropletGUID, d.RevisionGUID
	p.Sidecars = slices.Clone(p.Sidecars)
	if with.revision != nil {
		p.Command = with.revision.Commands["web"]
	}
	if err := with.scale.Apply(&p); err != nil {
		return err
	}
	p.Instances = deploy.FirstInstances(d)
	if err := store.Processes.Insert(c.Tx, &p); err != nil {
		return err
	}
	d.WebProcess, d.NewProcesses = p.GUID, []cf.DeploymentProcess{{GUID: p.GUID, Type: p.Type}}
	if err := supersede(c, with.before); err != nil {
		return err
	}
	state := cf.Deploying
	if d.Strategy == cf.Canary {
		state = cf.Prepaused
	}
	d.Become(state, string(cf.Deploying), c.Tx.Now)
	return store.Deployments.Insert(c.Tx, d)
}

// supersede ends a deployment that is under way, if there is one.
func supersede(c *control.Session, d *cf.Deployment) error {
	if d == nil {
		return nil
	}
	ended := cf.Canceled
	if d.State == cf.Deploying {
		ended = cf.Deployed
	}
	d.Become(ended, cf.Superseded, c.Tx.Now)
	return store.Deployments.Update(c.Tx, d)
}

// aboutQuota adds Cloud Controller's explanation to a quota that is too small.
func aboutQuota(err error, c *control.Session, app *cf.App) error {
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
