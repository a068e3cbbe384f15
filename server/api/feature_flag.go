package api

import (
	"slices"

	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

// featureFlags are Cloud Controller's flags with its defaults, by name.
var featureFlags = []cf.FeatureFlag{
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

func viewFeatureFlag(c *call, f *cf.FeatureFlag) doc {
	return doc{"name": f.Name, "enabled": f.Enabled, "updated_at": nil, "custom_error_message": orNil(f.CustomErrorMessage),
		"links": doc{"self": c.link("/v3/feature_flags/%s", f.Name)}}
}

// flag is a flag as it stands now.
func (c *call) flag(name string) (*cf.FeatureFlag, error) {
	i := slices.IndexFunc(featureFlags, func(f cf.FeatureFlag) bool { return f.Name == name })
	if i < 0 {
		return nil, cf.Errorf(cf.ResourceNotFound, "Feature flag not found")
	}
	f, err := store.FeatureFlags.Get(c.Tx, name)
	if store.IsNotFound(err) {
		initial := featureFlags[i]
		return &initial, nil
	}
	return f, err
}

// feature refuses what a disabled flag forbids the actor.
func (c *call) feature(name string) error {
	if c.Actor.Admin && slices.Contains(adminFlags, name) {
		return nil
	}
	if name == "space_developer_env_var_visibility" && c.Actor.May(authz.AdminReadOnly, authz.Place{}) {
		return nil
	}
	f, err := c.flag(name)
	if err != nil || f.Enabled {
		return err
	}
	if f.CustomErrorMessage != "" {
		return cf.Errorf(cf.FeatureDisabled, "Feature Disabled: %s", f.CustomErrorMessage)
	}
	return cf.Errorf(cf.FeatureDisabled, "Feature Disabled: %s", name)
}

func listFeatureFlags(c *call) (*response, error) {
	q, err := parseQuery(c.Request.URL.Query(), flagRows{})
	if err != nil {
		return nil, err
	}
	var found []*cf.FeatureFlag
	for _, f := range featureFlags {
		now, err := c.flag(f.Name)
		if err != nil {
			return nil, err
		}
		found = append(found, now)
	}
	if q.Desc {
		slices.Reverse(found)
	}
	return ok(page(c, q, window(found, q), len(found), viewFeatureFlag))
}

// flagRows is what parseQuery needs to know of the flags.
type flagRows struct{ noRows }

func (flagRows) Orders() []string { return []string{"name"} }

// window is a page of rows that are all there already.
func window[T any](rows []*T, q listQuery) []*T {
	from := min((q.Page-1)*q.PerPage, len(rows))
	return rows[from:min(from+q.PerPage, len(rows))]
}

func showFeatureFlag(c *call) (*response, error) {
	f, err := c.flag(c.param("name"))
	if err != nil {
		return nil, err
	}
	return ok(viewFeatureFlag(c, f))
}

func updateFeatureFlag(c *call) (*response, error) {
	var req struct {
		Enabled            opt[bool]   `json:"enabled"`
		CustomErrorMessage opt[string] `json:"custom_error_message"`
	}
	f, err := c.flag(c.param("name"))
	if err != nil {
		return nil, err
	}
	if err := c.permitAdmin(); err != nil {
		return nil, err
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	m := req.CustomErrorMessage
	if err := invalid(must(!req.Enabled.Null, "Enabled must be a boolean",
		!m.Set || m.Null || m.V != "", "Custom error message is too short (minimum is 1 character)",
		len(m.V) <= 250, "Custom error message is too long (maximum is 250 characters)")); err != nil {
		return nil, err
	}
	f.Enabled = req.Enabled.or(f.Enabled)
	if m.Set {
		f.CustomErrorMessage = m.V
	}
	if err := store.FeatureFlags.Put(c.Tx, f); err != nil {
		return nil, err
	}
	return ok(viewFeatureFlag(c, f))
}
