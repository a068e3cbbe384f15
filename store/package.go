package store

import "cupola/store/cf"

// Packages are the packages of apps.
var Packages = &Table[cf.Package]{table{
	name: "packages", singular: "Package", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, app_guid, type, state, error, digest, size, image, credential",
	fields: fieldsOf(func(v *cf.Package, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.AppGUID, &v.Type, &v.State, &v.Error, &v.Digest, &v.Size, &v.Image, sealedColumn{k, &v.Credential}}
	}),
	resource: resourceOf(func(v *cf.Package) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "packages.guid",
		"app_guids":          "app_guid",
		"states":             "state",
		"types":              "type",
		"space_guids":        "app_guid IN (SELECT guid FROM apps WHERE space_guid IN (SELECT value FROM json_each(?)))",
		"organization_guids": "app_guid IN (SELECT a.guid FROM apps a JOIN spaces s ON s.guid = a.space_guid WHERE s.org_guid IN (SELECT value FROM json_each(?)))",
		"digests":            "digest",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "app_guid IN (SELECT guid FROM apps WHERE space_guid IN :spaces)",
}}
