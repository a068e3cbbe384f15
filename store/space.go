package store

import "cupola/store/cf"

// Spaces are the spaces.
var Spaces = &Table[cf.Space]{table{
	name: "spaces", singular: "Space", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, name, org_guid, allow_ssh, isolation_segment, placement_pool, quota_guid",
	fields: fieldsOf(func(v *cf.Space, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Name, &v.OrgGUID, &v.AllowSSH,
			nullColumn{&v.SegmentGUID}, nullColumn{&v.PoolGUID}, nullColumn{&v.QuotaGUID}}
	}),
	resource: resourceOf(func(v *cf.Space) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":                   "spaces.guid",
		"names":                   "name",
		"organization_guids":      "org_guid",
		"isolation_segment_guids": "isolation_segment",
		"placement_pool_guids":    "placement_pool",
		"space_quota_guids":       "quota_guid",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible: "guid IN :spaces",
}}
