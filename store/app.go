package store

import (
	"strings"

	"cupola/store/cf"
)

// Apps are the apps.
var Apps = &Table[cf.App]{table{
	name: "apps", singular: "App", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, name, space_guid, state, lifecycle, env, droplet_guid, ssh_enabled, revisions_on, rev, current_revision, credentials, binding_form, placement_pool",
	fields: fieldsOf(func(v *cf.App, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Name, &v.SpaceGUID, &v.State, lifecycleColumn{k, &v.Lifecycle},
			sealedColumn{k, &v.Env}, nullColumn{&v.DropletGUID},
			&v.SSHEnabled, &v.RevisionsOn, &v.Rev, nullColumn{&v.CurrentRevision}, sealedColumn{k, &v.Credentials}, &v.BindingForm, nullColumn{&v.PoolGUID}}
	}),
	resource: resourceOf(func(v *cf.App) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":                "apps.guid",
		"names":                "name",
		"space_guids":          "space_guid",
		"organization_guids":   "space_guid IN (SELECT guid FROM spaces WHERE org_guid IN (SELECT value FROM json_each(?)))",
		"stacks":               "json_extract(lifecycle, '$.Stack')",
		"lifecycle_type":       "json_extract(lifecycle, '$.Type')",
		"states":               "state",
		"droplet_guids":        "droplet_guid",
		"placement_pool_guids": "placement_pool",
		// With a label that says when the app sleeps, or one with that in its text; the index
		// apps_sleep_after has this expression. It also takes labels that are damaged.
		"sleeping_after": `? IS NOT NULL AND instr(labels, '"` + cf.LabelSleepAfter + `"') > 0`,
	},
	accepts: map[string]func([]string) predicate{"sleeping_after": func([]string) predicate {
		return predicate{column: "labels", accept: func(v any) bool {
			labels, _ := v.(string)
			return strings.Contains(labels, cf.LabelSleepAfter)
		}}
	}},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name", "state": "state"},
	visible: "space_guid IN :spaces",
}}
