package store

import "cupola/store/cf"

// FeatureFlags are the flags that were changed; the rest have their defaults.
var FeatureFlags = &Table[cf.FeatureFlag]{table{
	name: "feature_flags", singular: "Feature flag",
	columns: "name, enabled, custom_error_message, updated_at",
	fields: fieldsOf(func(v *cf.FeatureFlag, _ *sealer) []any {
		return []any{&v.Name, &v.Enabled, &v.CustomErrorMessage, timeColumn{&v.UpdatedAt}}
	}),
	resource: resourceOf(func(*cf.FeatureFlag) *cf.Resource { return nil }),
	filters:  map[string]string{"guids": "name"},
}}

// EnvGroups are the environment variable groups that were changed: "running"
// and "staging".
var EnvGroups = &Table[cf.EnvGroup]{table{
	name: "env_groups", singular: "Environment variable group",
	columns: "name, vars, updated_at",
	fields: fieldsOf(func(v *cf.EnvGroup, k *sealer) []any {
		return []any{&v.Name, sealedColumn{k, &v.Vars}, timeColumn{&v.UpdatedAt}}
	}),
	resource: resourceOf(func(*cf.EnvGroup) *cf.Resource { return nil }),
	filters:  map[string]string{"guids": "name"},
}}
