package store

import "cupola/store/cf"

// Tasks are the tasks of apps.
var Tasks = &Table[cf.Task]{table{
	name: "tasks", singular: "Task", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, app_guid, droplet_guid, sequence_id, name, command, state, memory_mb, disk_mb, log_rate_limit, user, failure_reason, env, placement, build_guid",
	fields: fieldsOf(func(v *cf.Task, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.AppGUID, &v.DropletGUID, &v.SequenceID, &v.Name, sealedColumn{k, &v.Command}, &v.State,
			&v.MemoryMB, &v.DiskMB, &v.LogRateLimit, &v.User, &v.FailureReason, sealedColumn{k, &v.Env}, jsonColumn{&v.Placement}, &v.BuildGUID}
	}),
	resource: resourceOf(func(v *cf.Task) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "tasks.guid",
		"app_guids":          "app_guid",
		"names":              "name",
		"states":             "state",
		"sequence_ids":       "CAST(sequence_id AS TEXT)",
		"space_guids":        "app_guid IN (SELECT guid FROM apps WHERE space_guid IN (SELECT value FROM json_each(?)))",
		"organization_guids": "app_guid IN (SELECT a.guid FROM apps a JOIN spaces s ON s.guid = a.space_guid WHERE s.org_guid IN (SELECT value FROM json_each(?)))",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "app_guid IN (SELECT guid FROM apps WHERE space_guid IN :spaces)",
}}
