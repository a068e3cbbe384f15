package store

import "cupola/store/cf"

// Revisions are the revisions of apps.
var Revisions = &Table[cf.Revision]{table{
	name: "revisions", singular: "Revision", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, app_guid, version, droplet_guid, description, env, commands, sidecars",
	fields: fieldsOf(func(v *cf.Revision, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.AppGUID, &v.Version, &v.DropletGUID, &v.Description, sealedColumn{k, &v.Env},
			jsonColumn{&v.Commands}, jsonColumn{&v.Sidecars}}
	}),
	resource: resourceOf(func(v *cf.Revision) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":      "revisions.guid",
		"app_guids":  "app_guid",
		"versions":   "CAST(version AS TEXT)",
		"deployable": "iif(droplet_guid IN (SELECT guid FROM droplets WHERE state = 'STAGED'), 'true', 'false')",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "version": "version"},
	visible: "app_guid IN (SELECT guid FROM apps WHERE space_guid IN :spaces)",
}}
