package api

import (
	"time"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

func deploymentApp(d *cf.Deployment) string { return d.AppGUID }

func viewDeployment(c *call, d *cf.Deployment) doc {
	processes := []doc{}
	for _, p := range d.NewProcesses {
		processes = append(processes, doc{"guid": p.GUID, "type": p.Type})
	}
	self := "/v3/deployments/" + d.GUID
	links := doc{"self": c.link("%s", self), "app": c.link("/v3/apps/%s", d.AppGUID)}
	if d.StatusValue == cf.Active {
		links["cancel"] = c.action("POST", "%s/actions/cancel", self)
	}
	if d.State == cf.Paused {
		links["continue"] = c.action("POST", "%s/actions/continue", self)
	}
	return with(resource(d.Resource), doc{
		"status": viewDeploymentStatus(d), "strategy": d.Strategy, "options": viewDeploymentOptions(d),
		"droplet": doc{"guid": control.OrNil(d.DropletGUID)}, "previous_droplet": doc{"guid": control.OrNil(d.PreviousDroplet)},
		"new_processes": processes, "revision": c.deploymentRevision(d), "metadata": metadata(d.Metadata),
		"relationships": doc{"app": toOne(d.AppGUID)}, "links": links,
	})
}

// deploymentRevision is null for an app that has no revisions any longer.
func (c *call) deploymentRevision(d *cf.Deployment) any {
	if d.RevisionGUID == "" {
		return nil
	}
	if app, err := store.Apps.Get(c.Tx, d.AppGUID); err != nil || !app.RevisionsOn {
		return nil
	}
	return doc{"guid": d.RevisionGUID, "version": d.RevisionVersion}
}

func viewDeploymentStatus(d *cf.Deployment) doc {
	details := doc{"last_successful_healthcheck": stampOrNil(d.LastHealthy), "last_status_change": stampOrNil(d.StatusSince)}
	if d.Error != "" {
		details["error"] = d.Error
	}
	status := doc{"value": d.StatusValue, "reason": d.StatusReason, "details": details}
	if d.Strategy == cf.Canary {
		status["canary"] = doc{"steps": doc{"current": d.CanaryStep, "total": max(1, len(d.Options.Weights))}}
	}
	return status
}

// viewDeploymentOptions shows what was asked for.
func viewDeploymentOptions(d *cf.Deployment) doc {
	o := doc{"max_in_flight": d.Options.MaxInFlight}
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
		steps := []doc{}
		for _, w := range d.Options.Weights {
			steps = append(steps, doc{"instance_weight": w})
		}
		o["canary"] = doc{"steps": steps}
	}
	return o
}

func stampOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

// showDeployment holds the answer to the CLI, which waits for the deployment's
// end or pause.
func showDeployment(c *call) (*response, error) {
	return holdUntil(c, time.Now().Add(holdDeployment), store.Deployments.Name(), func(c *call) (*response, bool, error) {
		d, _, err := ofApp(c, store.Deployments, deploymentApp)
		if err != nil {
			return nil, false, err
		}
		return &response{body: viewDeployment(c, d)}, d.StatusValue != cf.Active || d.State == cf.Paused, nil
	})
}

// holdDeployment is how long. A push that waits for the first instance only
// looks at that between two answers.
const holdDeployment = 8 * time.Second

func updateDeployment(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	d, _, err := ofApp(c, store.Deployments, deploymentApp)
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&d.Metadata); err != nil {
		return nil, err
	}
	if err := store.Deployments.Update(c.Tx, d); err != nil {
		return nil, err
	}
	return ok(viewDeployment(c, d))
}

// operatedDeployment is the deployment of {guid}. One who may not operate its
// app is told that there is none, as Cloud Controller does.
func operatedDeployment(c *call) (*cf.Deployment, *cf.App, error) {
	d, app, err := ofApp(c, store.Deployments, deploymentApp)
	if control.IsKind(err, cf.NotAuthorized) || control.IsKind(err, cf.ResourceNotFound) {
		err = cf.Errorf(cf.ResourceNotFound, "Deployment not found")
	}
	return d, app, err
}

// cancelDeployment makes the droplet of before the app's; the loop goes back to
// its instances.
func cancelDeployment(c *call) (*response, error) {
	d, app, err := operatedDeployment(c)
	if err != nil {
		return nil, err
	}
	if d.StatusValue != cf.Active {
		return nil, cf.Unprocessable("Cannot cancel a deployment with status: %s and reason: %s", d.StatusValue, d.StatusReason)
	}
	if err := c.assignDroplet(app, d.PreviousDroplet); err != nil {
		return nil, err
	}
	c.Note(app, "Cancelling deployment for app with guid %s", app.GUID)
	if err := c.AuditApp(audit.AppDeploymentCancel, app, doc{"deployment_guid": d.GUID, "droplet_guid": control.OrNil(d.DropletGUID)}); err != nil {
		return nil, err
	}
	d.Become(cf.Canceling, string(cf.Canceling), c.Tx.Now)
	return &response{}, store.Deployments.Update(c.Tx, d)
}

// continueDeployment goes on with a canary that pauses: to the next step, after
// the last one to the end.
func continueDeployment(c *call) (*response, error) {
	d, app, err := operatedDeployment(c)
	if err != nil {
		return nil, err
	}
	if d.State != cf.Paused {
		return nil, cf.Unprocessable("Cannot continue a deployment with status: %s and reason: %s", d.StatusValue, d.StatusReason)
	}
	c.Note(app, "Continuing deployment for app with guid %s", app.GUID)
	if err := c.AuditApp(audit.AppDeploymentContinue, app, doc{"deployment_guid": d.GUID, "droplet_guid": control.OrNil(d.DropletGUID)}); err != nil {
		return nil, err
	}
	next := cf.Deploying
	if d.CanaryStep < len(d.Options.Weights) {
		d.CanaryStep++
		next = cf.Prepaused
	}
	d.Become(next, string(cf.Deploying), c.Tx.Now)
	return &response{}, store.Deployments.Update(c.Tx, d)
}

// notDeploying refuses to change an app's web process, or what it runs, while a
// deployment does.
func (c *call) notDeploying(app *cf.App, format string, args ...any) error {
	d, err := c.Tx.ActiveDeployment(app.GUID)
	if store.IsNotFound(err) || err == nil && !d.Progresses() {
		return nil
	}
	if err != nil {
		return err
	}
	return cf.Unprocessable(format, args...)
}

const (
	noScale   = "Cannot scale this process while a deployment is in flight."
	noUpdate  = "Cannot update this process while a deployment is in flight."
	noDroplet = "Unable to assign current droplet while the app has a deployment in progress. Wait for the deployment to complete or cancel it."
)
