package store

import "cupola/store/cf"

// Buildpacks are the admin buildpacks.
var Buildpacks = &Table[cf.Buildpack]{table{
	name: "buildpacks", singular: "Buildpack", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, name, stack, state, position, enabled, locked, lifecycle, filename, digest, system",
	fields: fieldsOf(func(v *cf.Buildpack, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Name, &v.Stack, &v.State, &v.Position, &v.Enabled, &v.Locked,
			&v.Lifecycle, &v.Filename, &v.Digest, &v.System}
	}),
	resource: resourceOf(func(v *cf.Buildpack) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":     "buildpacks.guid",
		"names":     "name",
		"stacks":    "stack",
		"lifecycle": "lifecycle",
	},
	orders: map[string]string{"created_at": "created_at", "updated_at": "updated_at", "position": "position", "lifecycle": "lifecycle", "name": "name"},
}}
