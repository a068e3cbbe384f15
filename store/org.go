package store

import "cupola/store/cf"

// Orgs are the organizations.
var Orgs = &Table[cf.Org]{table{
	name: "orgs", singular: "Organization", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, name, suspended, quota_guid, isolation_segment",
	fields: fieldsOf(func(v *cf.Org, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Name, &v.Suspended, nullColumn{&v.QuotaGUID}, nullColumn{&v.SegmentGUID}}
	}),
	resource: resourceOf(func(v *cf.Org) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":                    "orgs.guid",
		"names":                    "name",
		"organization_quota_guids": "quota_guid",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible: "guid IN :orgs",
}}
