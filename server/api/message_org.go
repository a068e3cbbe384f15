package api

import (
	"encoding/json"
	"fmt"
	"slices"

	"cupola/server/control/message"
	"cupola/server/control/orgs"
	"cupola/store/cf"
)

// printable is Cloud Controller's pattern of names of orgs and spaces.
const printable = `^[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}]+$`

var nameCharacters = message.Like(printable, "must not contain escaped characters")

// limits are the numbers of a part of a quota, which null lifts.
func limits(most map[string]int64, keys ...string) checks {
	m := checks{message.Keys(keys...)}
	for _, k := range keys {
		bounds := []message.Bound{message.AtLeast(0)}
		if n, bounded := most[k]; bounded {
			bounds = append(bounds, message.AtMost(n))
		}
		m = append(m, message.Optional(k, message.Integer(bounds...)))
	}
	return m
}

func maxInt(keys ...string) map[string]int64 {
	m := map[string]int64{"log_rate_limit_in_bytes_per_second": maxDBBigint}
	for _, k := range keys {
		m[k] = maxDBInt
	}
	return m
}

// The parts of quotas: CC: quotas_apps_message.rb, quotas_services_message.rb, ….
var (
	appLimits = limits(maxInt("total_memory_in_mb", "per_process_memory_in_mb", "total_instances", "per_app_tasks"),
		"total_memory_in_mb", "per_process_memory_in_mb", "total_instances", "per_app_tasks", "log_rate_limit_in_bytes_per_second")
	serviceLimits = checks{
		message.Keys("total_service_instances", "total_service_keys", "paid_services_allowed"),
		message.Optional("total_service_keys", message.Integer(message.AtLeast(0), message.AtMost(maxDBInt))),
		message.Optional("total_service_instances", message.Integer(message.AtLeast(0), message.AtMost(maxDBInt))),
		message.Optional("paid_services_allowed", message.Boolean),
	}
	routeLimits  = limits(maxInt("total_routes", "total_reserved_ports"), "total_routes", "total_reserved_ports")
	domainLimits = limits(nil, "total_domains")
)

// quotaMessage is of a quota of orgs or of spaces.
func quotaMessage(keys []string, name []message.Rule, more ...check) checks {
	m := checks{
		message.Keys(keys...),
		message.Given("name", message.Attribute("name", name...)),
		message.Given("apps", message.Part("apps", appLimits)),
		message.Given("services", message.Part("services", serviceLimits)),
		message.Given("routes", message.Part("routes", routeLimits)),
	}
	if slices.Contains(keys, "domains") {
		m = append(m, message.Given("domains", message.Part("domains", domainLimits)))
	}
	return append(m, more...)
}

var (
	orgQuotaKeys   = []string{"name", "apps", "services", "routes", "domains"}
	spaceQuotaKeys = []string{"name", "apps", "services", "routes"}
	orgQuotaName   = []message.Rule{message.String, message.Min(1), message.Max(250)}
	spaceQuotaName = []message.Rule{message.String, message.Present, message.Min(1), message.Max(250)}
)

// orgMessage is of an org; a new one must have a name.
func orgMessage(more ...check) checks {
	return append(checks{
		message.Metadata,
		message.Keys("name", "suspended", "metadata"),
		message.Optional("name", message.String, message.Min(1), message.Max(255), nameCharacters),
		message.Optional("suspended", message.Boolean),
	}, more...)
}

var roleTypes = []string{"organization_auditor", "organization_manager", "organization_billing_manager", "organization_user",
	"space_auditor", "space_manager", "space_developer", "space_supporter"}

// roleRelationships is CC: RoleCreateMessage::Relationships.
func roleRelationships(r *message.Request) {
	kind, _ := r.Get("type").(string)
	message.Relationships(message.Keys("space", "user", "organization"), message.Attribute("user", message.Present),
		roleUser, rolePlace(kind),
		func(r *message.Request) {
			fine := !r.Wrong("", "space", "organization")
			if fine && r.Get("organization") == nil {
				message.Attribute("space", message.Present, message.ToOne)(r)
				fine = !r.Wrong("", "space", "organization")
			}
			if fine && r.Get("space") == nil {
				message.Attribute("organization", message.Present, message.ToOne)(r)
			}
		}, roleUserForm)(r)
}

// userData is the user that a new role names.
func userData(r *message.Request) *message.Object {
	o, _ := r.Get("user.data").(*message.Object)
	return o
}

func roleUser(r *message.Request) {
	u := userData(r)
	guid, name, origin := u.Has("guid"), u.Has("username"), u.Has("origin")
	if guid && name {
		r.Add("username", "cannot be specified when identifying user by guid")
	}
	if guid && origin {
		r.Add("user_origin", "cannot be specified when identifying user by guid")
	}
	if !name && origin {
		r.Add("user_origin", "cannot be specified without specifying the username")
	}
	if !name && !guid {
		r.Add("user", "must have a username or guid specified")
	}
}

// roleUserForm wants what identifies a user to be strings.
func roleUserForm(r *message.Request) {
	fine := func() bool { return !r.Wrong("username", "user_origin", "user") }
	u := userData(r)
	if fine() && u.Has("guid") {
		message.Attribute("user", message.ToOne)(r)
	}
	if fine() && u.Has("username") {
		message.At("user.data.username", "username", message.String)(r)
	}
	if fine() && u.Has("origin") {
		message.OptionalAt("user.data.origin", "user_origin", message.String)(r)
	}
}

// rolePlace wants an org or a space, as the type of the role has it.
func rolePlace(kind string) check {
	return func(r *message.Request) {
		space, org := given(r.Get("space.data")), given(r.Get("organization.data"))
		known := slices.Contains(roleTypes, kind)
		ofOrg := known && cf.RoleType(kind).OfOrg()
		if r.Get("space.data") == nil && r.Get("organization.data") == nil {
			r.Base("must specify either a space or an organization.")
		}
		if space && ofOrg {
			r.Add("space", fmt.Sprintf("cannot be provided with the organization role type: '%s'.", kind))
		}
		if org && known && !ofOrg {
			r.Add("organization", fmt.Sprintf("cannot be provided with the space role type: '%s'.", kind))
		}
		if space && org {
			r.Base("cannot specify both an organization and a space.")
		}
	}
}

// given reports whether Ruby takes a value for true.
func given(v any) bool { return v != nil && v != false }

// securityRules checks the rules of a security group: CC:
// validators/security_group_rule_validator.rb.
func securityRules(r *message.Request) {
	if _, ok := r.Get("rules").([]any); !ok {
		r.Add("rules", "must be an array")
		return
	}
	for _, f := range orgs.RuleFaults(json.RawMessage(message.JSON(r.Get("rules")))) {
		r.Base(f)
	}
}

func globallyEnabled(r *message.Request) {
	v := r.Get("globally_enabled")
	if v == nil {
		return
	}
	o, ok := v.(*message.Object)
	if !ok {
		r.Add("globally_enabled", "must be an object")
		return
	}
	for _, k := range o.Keys {
		if k != "running" && k != "staging" {
			r.Add("globally_enabled", "only allows keys 'running' or 'staging'")
			return
		}
	}
	if slices.ContainsFunc(valuesOf(o), func(v any) bool { _, ok := v.(bool); return !ok }) {
		r.Add("globally_enabled", "values must be booleans")
	}
}

// userForm wants a user by the GUID, or by name and origin: CC: UserCreateValidator.
func userForm(r *message.Request) {
	name, origin := given(r.Get("username")), given(r.Get("origin"))
	wrong := func(is bool, attribute, text string) {
		if is {
			r.Add(attribute, text)
		}
	}
	switch {
	case given(r.Get("guid")):
		wrong(name, "username", "cannot be provided with 'guid'")
		wrong(origin, "origin", "cannot be provided with 'guid'")
	case name || origin:
		wrong(!name, "origin", "can only be provided together with 'username'")
		wrong(!origin, "username", "can only be provided together with 'origin'")
		wrong(r.Get("origin") == "uaa", "origin", "cannot be 'uaa' when creating a user by username")
	default:
		r.Add("guid", "or 'username' and 'origin' must be provided")
	}
}

var orgMessages = map[string]checks{
	"POST /v3/organizations":         orgMessage(message.Attribute("name", message.Present)),
	"PATCH /v3/organizations/{guid}": orgMessage(),
	"PATCH /v3/organizations/{guid}/relationships/default_isolation_segment": toOneMessage(segmentData),
	"POST /v3/organization_quotas": quotaMessage(append(slices.Clone(orgQuotaKeys), "relationships"), orgQuotaName,
		message.Given("relationships", message.Relationships(message.Optional("organizations", message.ToMany))), message.Attribute("name", message.Present)),
	"PATCH /v3/organization_quotas/{guid}":                            quotaMessage(orgQuotaKeys, orgQuotaName),
	"POST /v3/organization_quotas/{guid}/relationships/organizations": toManyMessage,
	"POST /v3/space_quotas": quotaMessage(append(slices.Clone(spaceQuotaKeys), "relationships"), spaceQuotaName,
		message.Relationships(message.Attribute("organization", message.ToOne), message.Optional("spaces", message.ToMany)), message.Attribute("name", message.Present)),
	"PATCH /v3/space_quotas/{guid}":                     quotaMessage(spaceQuotaKeys, spaceQuotaName),
	"POST /v3/space_quotas/{guid}/relationships/spaces": toManyMessage,
	"POST /v3/spaces": {
		message.Metadata,
		message.Keys("name", "relationships", "suspended", "metadata"),
		message.Relationships(message.Keys("organization"), message.Attribute("organization", message.Present, message.ToOne)),
		message.Attribute("name", message.Present),
		message.Optional("name", message.String, message.Max(255), nameCharacters),
		message.Optional("suspended", message.Boolean),
	},
	"PATCH /v3/spaces/{guid}":                                 orgMessage(),
	"PATCH /v3/spaces/{guid}/features/{name}":                 {message.Keys("enabled"), message.Attribute("enabled", message.Boolean)},
	"PATCH /v3/spaces/{guid}/relationships/isolation_segment": toOneMessage(segmentData),
	"POST /v3/roles": {
		message.Keys("type", "relationships"),
		roleRelationships,
		message.Attribute("type", message.In("must be one of the allowed types "+message.Inspect(roleTypes), roleTypes...)),
	},
	"POST /v3/security_groups": {
		message.Keys("name", "globally_enabled", "relationships", "rules"),
		message.Given("relationships", message.Relationships(message.Optional("running_spaces", message.ToMany), message.Optional("staging_spaces", message.ToMany))),
		message.Given("rules", securityRules),
		message.Attribute("name", message.Present, message.String, message.Max(250)),
		globallyEnabled,
	},
	"PATCH /v3/security_groups/{guid}": {
		message.Keys("name", "globally_enabled", "rules"),
		message.Given("rules", securityRules),
		globallyEnabled,
		message.Given("name", message.Attribute("name", message.String, message.Min(1), message.Max(250))),
	},
	"POST /v3/security_groups/{guid}/relationships/{kind}": toManyMessage,
	"POST /v3/isolation_segments": {message.Metadata, message.Keys("name", "metadata"),
		message.Optional("name", message.String), message.Attribute("name", message.Present)},
	"PATCH /v3/isolation_segments/{guid}": {message.Metadata, message.Keys("name", "metadata"), message.Optional("name", message.String)},
	"POST /v3/isolation_segments/{guid}/relationships/organizations": {
		message.Keys("data"),
		message.Attribute("data", message.Present, message.Array),
		func(r *message.Request) {
			list, _ := r.Get("data").([]any)
			for _, v := range list {
				o, _ := v.(*message.Object)
				if guid, ok := o.Get("guid").(string); !ok {
					r.Add("data", message.Text(o.Get("guid"))+guid+" not a string")
				}
			}
		},
	},
	"POST /v3/users": {
		message.Metadata,
		message.Keys("guid", "origin", "username", "metadata"),
		message.Optional("guid", message.GUID),
		message.Optional("origin", message.String),
		message.Optional("username", message.String),
		userForm,
	},
	"PATCH /v3/users/{guid}": labelsOnly,
	"PATCH /v3/feature_flags/{name}": {
		message.Metadata,
		message.Keys("custom_error_message", "enabled", "metadata"),
		message.Given("enabled", message.Attribute("enabled", message.Boolean)),
		message.Optional("custom_error_message", message.String, message.Min(1), message.Max(250)),
	},
}
