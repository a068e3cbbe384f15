package store

import "cupola/store/cf"

// Deployments are the deployments of apps. An app has at most one that is
// ACTIVE.
var Deployments = deployments{&Table[cf.Deployment]{table{
	name: "deployments", singular: "Deployment", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, app_guid, strategy, state, status_value, status_reason, status_since, last_healthy, error, " +
		"droplet_guid, previous_droplet, revision_guid, revision_version, options, canary_step, original_instances, web_process, new_processes",
	fields: fieldsOf(func(v *cf.Deployment, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.AppGUID, &v.Strategy, &v.State, &v.StatusValue, &v.StatusReason, timeColumn{&v.StatusSince}, timeColumn{&v.LastHealthy}, &v.Error,
			&v.DropletGUID, &v.PreviousDroplet, &v.RevisionGUID, &v.RevisionVersion,
			jsonColumn{&v.Options}, &v.CanaryStep, &v.OriginalInstances, &v.WebProcess, jsonColumn{&v.NewProcesses}}
	}),
	resource: resourceOf(func(v *cf.Deployment) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":          "deployments.guid",
		"app_guids":      "app_guid",
		"states":         "state",
		"status_values":  "status_value",
		"status_reasons": "status_reason",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "app_guid IN (SELECT guid FROM apps WHERE space_guid IN :spaces)",
}}}

type deployments struct{ *Table[cf.Deployment] }

// ActiveOf is the deployment of an app that is under way, or
// cf.ResourceNotFound.
func (t deployments) ActiveOf(tx *Tx, appGUID string) (*cf.Deployment, error) {
	return t.First(tx, Query{Where: map[string][]string{"app_guids": {appGUID}, "status_values": {cf.Active}}})
}

// Active are the deployments of all apps that are under way. It looks at no
// others, of which there may be many.
func (t deployments) Active(tx *Tx) ([]*cf.Deployment, error) {
	return query(tx, t.Table, "SELECT "+t.table.columns+" FROM deployments WHERE status_value = 'ACTIVE' ORDER BY id")
}
