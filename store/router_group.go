package store

import "cupola/store/cf"

// RouterGroups are the router groups besides the machine's own.
var RouterGroups = &Table[cf.RouterGroup]{table{
	name: "router_groups", singular: "RouterGroup",
	columns: "guid, created_at, updated_at, name, type, ports",
	fields: fieldsOf(func(v *cf.RouterGroup, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Name, &v.Type, &v.Ports}
	}),
	resource: resourceOf(func(v *cf.RouterGroup) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "names": "name"},
	orders:   map[string]string{"created_at": "created_at", "name": "name"},
}}
