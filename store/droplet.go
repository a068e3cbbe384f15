package store

import "cupola/store/cf"

// Droplets are the droplets of apps.
var Droplets = &Table[cf.Droplet]{table{
	name: "droplets", singular: "Droplet", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, app_guid, package_guid, build_guid, state, error, digest, size, stack, lifecycle, buildpacks, process_types, sidecars, execution_metadata, image",
	fields: fieldsOf(func(v *cf.Droplet, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.AppGUID, nullColumn{&v.PackageGUID}, nullColumn{&v.BuildGUID}, &v.State, &v.Error,
			&v.Digest, &v.Size, &v.Stack, lifecycleColumn{k, &v.Lifecycle}, jsonColumn{&v.Buildpacks},
			jsonColumn{&v.ProcessTypes}, jsonColumn{&v.Sidecars}, &v.ExecutionMetadata, &v.Image}
	}),
	resource: resourceOf(func(v *cf.Droplet) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "droplets.guid",
		"app_guids":          "app_guid",
		"states":             "state",
		"package_guids":      "package_guid",
		"space_guids":        "app_guid IN (SELECT guid FROM apps WHERE space_guid IN (SELECT value FROM json_each(?)))",
		"organization_guids": "app_guid IN (SELECT a.guid FROM apps a JOIN spaces s ON s.guid = a.space_guid WHERE s.org_guid IN (SELECT value FROM json_each(?)))",
		"digests":            "digest",
		"current":            "guid IN (SELECT droplet_guid FROM apps) = (SELECT value = 'true' FROM json_each(?) LIMIT 1)",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "app_guid IN (SELECT guid FROM apps WHERE space_guid IN :spaces)",
}}
