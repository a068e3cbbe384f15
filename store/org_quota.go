package store

import "cupola/store/cf"

// OrgQuotas are the quotas of organizations.
var OrgQuotas = &Table[cf.OrgQuota]{table{
	name: "org_quotas", singular: "Organization quota", labelled: false,
	columns: "guid, created_at, updated_at, name, limits",
	fields: fieldsOf(func(v *cf.OrgQuota, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.Name, jsonColumn{&v.Limits}}
	}),
	resource: resourceOf(func(v *cf.OrgQuota) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "org_quotas.guid",
		"names":              "name",
		"organization_guids": "guid IN (SELECT quota_guid FROM orgs WHERE guid IN (SELECT value FROM json_each(?)))",
	},
	orders: map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
}}
