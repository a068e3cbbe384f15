package store

import "cupola/store/cf"

// Events are the audit events.
var Events = &Table[cf.Event]{table{
	name: "events", singular: "Event", labelled: false,
	columns: "guid, created_at, updated_at, type, actor, target_guid, target_type, target_name, space_guid, org_guid, data",
	fields: fieldsOf(func(v *cf.Event, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.Type, jsonColumn{&v.Actor}, &v.TargetGUID, &v.TargetType, &v.TargetName,
			&v.SpaceGUID, &v.OrgGUID, jsonColumn{&v.Data}}
	}),
	resource: resourceOf(func(v *cf.Event) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "events.guid",
		"types":              "type",
		"target_guids":       "target_guid",
		"target_guids[not]":  "target_guid NOT IN (SELECT value FROM json_each(?))",
		"space_guids":        "space_guid",
		"organization_guids": "org_guid",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "space_guid IN :event_spaces OR org_guid IN :event_orgs",
}}
