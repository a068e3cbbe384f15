package store

import "cupola/store/cf"

// Sleeps are the processes that sleep.
var Sleeps = &Table[cf.Sleep]{table{
	name: "process_sleeps", singular: "Sleep",
	columns: "process_guid, app_guid, lrp_guid, instances, state, since",
	fields: fieldsOf(func(v *cf.Sleep, _ *sealer) []any {
		return []any{&v.ProcessGUID, &v.AppGUID, &v.LRP, &v.Instances, &v.State, timeColumn{&v.Since}}
	}),
	resource: resourceOf(func(*cf.Sleep) *cf.Resource { return nil }),
	filters:  map[string]string{"guids": "process_guid", "app_guids": "app_guid"},
}}
