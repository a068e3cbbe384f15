package store

import "cupola/store/cf"

// SecurityGroups are the sets of egress rules. The filters running_in_space_guids
// and staging_in_space_guids take those too that hold everywhere.
var SecurityGroups = &Table[cf.SecurityGroup]{table{
	name: "security_groups", singular: "Security group", labelled: false,
	columns: "guid, created_at, updated_at, name, rules, global_running, global_staging, running_spaces, staging_spaces",
	fields: fieldsOf(func(v *cf.SecurityGroup, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.Name, jsonColumn{&v.Rules}, &v.GlobalRunning, &v.GlobalStaging,
			jsonColumn{&v.RunningSpaces}, jsonColumn{&v.StagingSpaces}}
	}),
	resource: resourceOf(func(v *cf.SecurityGroup) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":                    "security_groups.guid",
		"names":                    "name",
		"globally_enabled_running": "global_running = (SELECT value = 'true' FROM json_each(?) LIMIT 1)",
		"globally_enabled_staging": "global_staging = (SELECT value = 'true' FROM json_each(?) LIMIT 1)",
		"running_space_guids":      "EXISTS (SELECT 1 FROM json_each(running_spaces) s WHERE s.value IN (SELECT value FROM json_each(?)))",
		"running_in_space_guids":   "global_running OR EXISTS (SELECT 1 FROM json_each(running_spaces) s WHERE s.value IN (SELECT value FROM json_each(?)))",
		"staging_in_space_guids":   "global_staging OR EXISTS (SELECT 1 FROM json_each(staging_spaces) s WHERE s.value IN (SELECT value FROM json_each(?)))",
		"staging_space_guids":      "EXISTS (SELECT 1 FROM json_each(staging_spaces) s WHERE s.value IN (SELECT value FROM json_each(?)))",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "global_running OR global_staging OR EXISTS (SELECT 1 FROM json_each(running_spaces) s WHERE s.value IN :spaces) OR EXISTS (SELECT 1 FROM json_each(staging_spaces) s WHERE s.value IN :spaces)",
}}
