package store

import "cupola/store/cf"

// Roles are who is what in which org or space. The filter all_organization_guids
// takes the roles in an org's spaces too.
var Roles = &Table[cf.Role]{table{
	name: "roles", singular: "Role", labelled: false,
	columns: "guid, created_at, updated_at, type, user_guid, org_guid, space_guid",
	fields: fieldsOf(func(v *cf.Role, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.Type, &v.UserGUID, &v.OrgGUID, nullColumn{&v.SpaceGUID}}
	}),
	resource: resourceOf(func(v *cf.Role) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":                  "roles.guid",
		"types":                  "type",
		"user_guids":             "user_guid",
		"organization_guids":     "space_guid IS NULL AND org_guid IN (SELECT value FROM json_each(?))",
		"space_guids":            "space_guid",
		"all_organization_guids": "org_guid",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "(space_guid IS NULL AND org_guid IN :orgs) OR space_guid IN :spaces",
}}
