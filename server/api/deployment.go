package api

import (
	"time"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/store"
	"cupola/store/cf"
)

func deploymentApp(d *cf.Deployment) string { return d.AppGUID }

var (
	findDeployment  = anApps(store.Deployments.Table, deploymentApp)
	labelDeployment = label(store.Deployments.Table, func(d *cf.Deployment) *cf.Metadata { return &d.Metadata })
)

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
		"status": viewDeploymentStatus(d), "strategy": d.Strategy, "options": apps.Options(d),
		"droplet": doc{"guid": control.OrNil(d.DropletGUID)}, "previous_droplet": doc{"guid": control.OrNil(d.PreviousDroplet)},
		"new_processes": processes, "revision": deploymentRevision(c, d), "metadata": metadata(d.Metadata),
		"relationships": doc{"app": toOne(d.AppGUID)}, "links": links,
	})
}

// deploymentRevision is null for an app that has no revisions any longer.
func deploymentRevision(c *call, d *cf.Deployment) any {
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

func stampOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

// createDeployment begins to replace what an app's web process runs.
func createDeployment(c *call) (*response, error) {
	var req deploymentRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	d, err := apps.Deploy(c.Session, req.deployment())
	if err != nil {
		return nil, err
	}
	return created(viewDeployment(c, d))
}

// showDeployment holds the answer to the CLI, which waits for the deployment's
// end or pause.
func showDeployment(c *call) (*response, error) {
	return holdUntil(c, time.Now().Add(holdDeployment), func(c *call) (*response, bool, error) {
		d, _, err := ofApp(c, store.Deployments.Table, deploymentApp)
		if err != nil {
			return nil, false, err
		}
		return &response{body: viewDeployment(c, d)}, d.StatusValue != cf.Active || d.State == cf.Paused, nil
	})
}

// holdDeployment is how long. A push that waits for the first instance only
// looks at that between two answers.
const holdDeployment = 8 * time.Second

// operatedDeployment is the deployment of {guid}. To users who may not operate
// its app it does not exist, as in Cloud Controller.
func operatedDeployment(c *call) (*cf.Deployment, *cf.App, error) {
	d, app, err := ofApp(c, store.Deployments.Table, deploymentApp)
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
	return &response{}, apps.CancelDeployment(c.Session, app, d)
}

// continueDeployment goes on with a canary that pauses: to the next step, after
// the last one to the end.
func continueDeployment(c *call) (*response, error) {
	d, app, err := operatedDeployment(c)
	if err != nil {
		return nil, err
	}
	return &response{}, apps.ContinueDeployment(c.Session, app, d)
}
