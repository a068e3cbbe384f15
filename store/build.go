package store

import "cupola/store/cf"

// Builds are the builds of apps.
var Builds = &Table[cf.Build]{table{
	name: "builds", singular: "Build", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, app_guid, package_guid, droplet_guid, state, error, lifecycle, memory_mb, disk_mb, log_rate_limit, created_by, env, credentials, placement, buildpack, inputs",
	fields: fieldsOf(func(v *cf.Build, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.AppGUID, &v.PackageGUID, nullColumn{&v.DropletGUID}, &v.State, &v.Error,
			lifecycleColumn{k, &v.Lifecycle}, &v.MemoryMB, &v.DiskMB, &v.LogRateLimit, jsonColumn{&v.CreatedBy}, sealedColumn{k, &v.Env}, sealedColumn{k, &v.Credentials}, jsonColumn{&v.Placement}, &v.Buildpack, &v.Inputs}
	}),
	resource: resourceOf(func(v *cf.Build) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":         "builds.guid",
		"app_guids":     "app_guid",
		"states":        "state",
		"package_guids": "package_guid",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "app_guid IN (SELECT guid FROM apps WHERE space_guid IN :spaces)",
}}
