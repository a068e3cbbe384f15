package store

import "cupola/store/cf"

// Processes are the processes of apps.
var Processes = &Table[cf.Process]{table{
	name: "processes", singular: "Process", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, app_guid, type, command, instances, memory_mb, disk_mb, log_rate_limit, health_check, readiness_check, revision_guid, user, sidecars, droplet_guid, rev, placement, services, binding_form",
	fields: fieldsOf(func(v *cf.Process, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.AppGUID, &v.Type, &v.Command, &v.Instances, &v.MemoryMB, &v.DiskMB, &v.LogRateLimit,
			jsonColumn{&v.HealthCheck}, jsonColumn{&v.ReadinessCheck},
			&v.RevisionGUID, &v.User, jsonColumn{&v.Sidecars}, &v.DropletGUID, &v.Rev, jsonColumn{&v.Placement}, sealedTextColumn{k, &v.Services}, &v.BindingForm}
	}),
	resource: resourceOf(func(v *cf.Process) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "processes.guid",
		"app_guids":          "app_guid",
		"types":              "type",
		"sidecar_guids":      "EXISTS (SELECT 1 FROM json_each(sidecars) s WHERE s.value ->> 'guid' IN (SELECT value FROM json_each(?)))",
		"space_guids":        "app_guid IN (SELECT guid FROM apps WHERE space_guid IN (SELECT value FROM json_each(?)))",
		"organization_guids": "app_guid IN (SELECT a.guid FROM apps a JOIN spaces s ON s.guid = a.space_guid WHERE s.org_guid IN (SELECT value FROM json_each(?)))",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "app_guid IN (SELECT guid FROM apps WHERE space_guid IN :spaces)",
}}
