package store

import "cupola/store/cf"

// Groups are the UAA's groups beside the scopes that it always knows.
var Groups = &Table[cf.Group]{
	name: "uaa_groups", singular: "Group",
	columns: "guid, created_at, updated_at, name, description, version",
	fields: func(v *cf.Group, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Name, &v.Description, &v.Version}
	},
	resource: func(v *cf.Group) *cf.Resource { return &v.Resource },
	filters:  map[string]string{"guids": "guid", "names": "name"},
	orders:   map[string]string{"created_at": "created_at", "name": "name"},
}
