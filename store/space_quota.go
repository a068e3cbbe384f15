package store

import "cupola/store/cf"

// SpaceQuotas are the quotas that spaces of an org can have. The org's managers see
// them, and users with a role in a space see its quota.
var SpaceQuotas = &Table[cf.SpaceQuota]{table{
	name: "space_quotas", singular: "Space quota", labelled: false,
	columns: "guid, created_at, updated_at, name, org_guid, limits",
	fields: fieldsOf(func(v *cf.SpaceQuota, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.Name, &v.OrgGUID, jsonColumn{&v.Limits}}
	}),
	resource: resourceOf(func(v *cf.SpaceQuota) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "space_quotas.guid",
		"names":              "name",
		"organization_guids": "org_guid",
		"space_guids":        "guid IN (SELECT quota_guid FROM spaces WHERE guid IN (SELECT value FROM json_each(?)))",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "org_guid IN :managed_orgs OR guid IN (SELECT quota_guid FROM spaces WHERE guid IN :spaces)",
}}
