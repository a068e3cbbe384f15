package api

import (
	"time"

	"cupola/store"
	"cupola/store/cf"
)

func deploymentApp(d *cf.Deployment) string { return d.AppGUID }

func viewDeployment(c *call, d *cf.Deployment) doc {
	processes := []doc{}
	for _, p := range d.NewProcesses {
		processes = append(processes, doc{"guid": p.GUID, "type": p.Type})
	}
	var revision any
	if d.RevisionGUID != "" {
		revision = doc{"guid": d.RevisionGUID, "version": d.RevisionVersion}
	}
	links := doc{"self": c.link("/v3/deployments/%s", d.GUID), "app": c.link("/v3/apps/%s", d.AppGUID)}
	if d.StatusValue == "ACTIVE" {
		links["cancel"] = c.action("POST", "/v3/deployments/%s/actions/cancel", d.GUID)
	}
	return with(resource(d.Resource), doc{
		"status": doc{"value": d.StatusValue, "reason": d.StatusReason,
			"details": doc{"last_successful_healthcheck": nil, "last_status_change": stamp(time.Unix(d.StatusSince, 0))}},
		"strategy": d.Strategy, "options": doc{"max_in_flight": d.MaxInFlight}, "droplet": doc{"guid": orNil(d.DropletGUID)},
		"previous_droplet": doc{"guid": orNil(d.PreviousDroplet)}, "new_processes": processes, "revision": revision, "metadata": metadata(d.Metadata),
		"relationships": doc{"app": toOne(d.AppGUID)}, "links": links,
	})
}

func showDeployment(c *call) (*response, error) {
	d, _, err := ofApp(c, store.Deployments, deploymentApp)
	if err != nil {
		return nil, err
	}
	return ok(viewDeployment(c, d))
}

// createDeployment refuses: there is no rolling here yet.
func createDeployment(c *call) (*response, error) {
	var req struct {
		Relationships struct {
			App ref `json:"app"`
		} `json:"relationships"`
		Droplet  opt[any]       `json:"droplet"`
		Revision opt[any]       `json:"revision"`
		Strategy opt[string]    `json:"strategy"`
		Options  opt[any]       `json:"options"`
		Metadata *metadataPatch `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	c.permitted = true
	_, err := c.appBy(req.Relationships.App.guid())
	if isKind(err, cf.ResourceNotFound) || isKind(err, cf.NotAuthorized) {
		err = cf.Unprocessable("Unable to use app. Ensure that the app exists and you have access to it.")
	}
	if err != nil {
		return nil, err
	}
	return nil, cf.Unprocessable("Deployments are not available here yet. Push or restart without --strategy.")
}
