package store

import "cupola/store/cf"

// Deployments are the deployments of apps.
var Deployments = &Table[cf.Deployment]{
	name: "deployments", singular: "Deployment", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, app_guid, strategy, status_value, status_reason, status_since, droplet_guid, previous_droplet, revision_guid, revision_version, max_in_flight, new_processes",
	fields: func(v *cf.Deployment, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.AppGUID, &v.Strategy, &v.StatusValue, &v.StatusReason, &v.StatusSince, &v.DropletGUID, &v.PreviousDroplet,
			&v.RevisionGUID, &v.RevisionVersion, &v.MaxInFlight, jsonColumn{&v.NewProcesses}}
	},
	resource: func(v *cf.Deployment) *cf.Resource { return &v.Resource },
	filters: map[string]string{
		"guids":          "deployments.guid",
		"app_guids":      "app_guid",
		"states":         "status_value",
		"status_values":  "status_value",
		"status_reasons": "status_reason",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "app_guid IN (SELECT guid FROM apps WHERE space_guid IN :spaces)",
}
