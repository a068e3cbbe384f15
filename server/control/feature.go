package control

import (
	"slices"

	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

// FeatureFlags are Cloud Controller's flags with its defaults, by name.
var FeatureFlags = []cf.FeatureFlag{
	{Name: "app_bits_upload", Enabled: true},
	{Name: "app_scaling", Enabled: true},
	{Name: "diego_cnb"},
	{Name: "diego_custom_stacks"},
	{Name: "diego_docker"},
	{Name: "env_var_visibility", Enabled: true},
	{Name: "hash_based_routing"},
	{Name: "hide_marketplace_from_unauthenticated_users"},
	{Name: "private_domain_creation", Enabled: true},
	{Name: "resource_matching", Enabled: true},
	{Name: "route_creation", Enabled: true},
	{Name: "route_sharing"},
	{Name: "service_instance_creation", Enabled: true},
	{Name: "service_instance_sharing"},
	{Name: "set_roles_by_username", Enabled: true},
	{Name: "space_developer_env_var_visibility", Enabled: true},
	{Name: "space_scoped_private_broker_creation", Enabled: true},
	{Name: "task_creation", Enabled: true},
	{Name: "unset_roles_by_username", Enabled: true},
	{Name: "user_org_creation"},
}

// adminFlags are the flags that do not bind admins.
var adminFlags = []string{"app_bits_upload", "app_scaling", "private_domain_creation", "route_creation", "service_instance_creation", "set_roles_by_username",
	"space_developer_env_var_visibility", "task_creation", "unset_roles_by_username"}

// Flag is a flag as it stands now.
func (c *Session) Flag(name string) (*cf.FeatureFlag, error) {
	i := slices.IndexFunc(FeatureFlags, func(f cf.FeatureFlag) bool { return f.Name == name })
	if i < 0 {
		return nil, cf.Errorf(cf.ResourceNotFound, "Feature flag not found")
	}
	f, err := store.FeatureFlags.Get(c.Tx, name)
	if store.IsNotFound(err) {
		initial := FeatureFlags[i]
		return &initial, nil
	}
	return f, err
}

// Feature refuses what a disabled flag forbids the actor.
func (c *Session) Feature(name string) error {
	if c.Actor.Admin && slices.Contains(adminFlags, name) {
		return nil
	}
	if name == "space_developer_env_var_visibility" && c.Actor.May(authz.AdminReadOnly, authz.Place{}) {
		return nil
	}
	f, err := c.Flag(name)
	if err != nil || f.Enabled {
		return err
	}
	if f.CustomErrorMessage != "" {
		return cf.Errorf(cf.FeatureDisabled, "Feature Disabled: %s", f.CustomErrorMessage)
	}
	return cf.Errorf(cf.FeatureDisabled, "Feature Disabled: %s", name)
}
