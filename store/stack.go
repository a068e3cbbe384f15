package store

import "cupola/store/cf"

// Stacks are the stacks.
var Stacks = &Table[cf.Stack]{table{
	name: "stacks", singular: "Stack", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, name, description, state, state_reason, compat, is_default",
	fields: fieldsOf(func(v *cf.Stack, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Name, &v.Description, &v.State, &v.StateReason, &v.Compat, &v.Default}
	}),
	resource: resourceOf(func(v *cf.Stack) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":   "stacks.guid",
		"names":   "name",
		"default": "is_default = (SELECT value = 'true' FROM json_each(?) LIMIT 1)",
	},
	orders: map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
}}
