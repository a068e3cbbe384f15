package routes

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cupola/runtime/pattern"
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/store/cf"
)

// NewDomain is a domain to be made: a shared one, or a private one of an org.
type NewDomain struct {
	Name          string             `json:"name"`
	Internal      change.Field[bool] `json:"internal"`
	RouterGroup   routerGroup        `json:"router_group"`
	Enforce       change.Field[bool] `json:"enforce_route_policies"`
	Scope         change.Field[any]  `json:"route_policies_scope"`
	Metadata      *change.Metadata   `json:"metadata"`
	Relationships struct {
		Organization change.ToOne  `json:"organization"`
		SharedOrgs   change.ToMany `json:"shared_organizations"`
	} `json:"relationships"`
}

var domainPattern = pattern.Lazy(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+$`)

// Validate lists what is wrong with the domain, in Cloud Controller's words.
func (r NewDomain) Validate() []string {
	return control.Must(r.Name != "", "Name can't be blank",
		len(r.Name) >= 3 && len(r.Name) <= 253, "Name is too short (minimum is 3 characters)",
		domainPattern().MatchString(r.Name), "Name does not comply with RFC 1035 standards",
		r.Relationships.Organization.GUID() != "" || len(r.Relationships.SharedOrgs.Data) == 0, "Relationships cannot contain shared_organizations without an owning organization.",
		!r.Internal.V || r.Relationships.Organization.GUID() == "", "Cannot associate an internal domain with an organization",
		!r.Internal.V || r.RouterGroup.GUID == "", "Internal domains cannot be associated to a router group.",
		!r.Internal.V || !r.Enforce.V, "Internal domains cannot have route policy enforcement. Internal routes bypass GoRouter.",
		r.RouterGroup.GUID == "" || !r.Enforce.V, "Domains with a router group cannot have route policy enforcement. TCP routes do not support mTLS policy enforcement.",
		r.Scope.V == nil || r.scope() != "", "Route policies scope must be one of 'any', 'org', 'space'",
		!r.Enforce.V || r.Scope.V != nil, "Route policies scope is required when enforce_route_policies is true",
		r.Relationships.Organization.GUID() == "" || r.RouterGroup.GUID == "", "Domains scoped to an organization cannot be associated to a router group.")
}

// scope is that of the domain's policies; "" for none, or one that is none.
func (r NewDomain) scope() string {
	text, _ := r.Scope.V.(string)
	if !slices.Contains([]string{"any", "org", "space"}, text) {
		return ""
	}
	return text
}

// routerGroup names the group of a new domain; "" is none.
type routerGroup struct{ GUID string }

// UnmarshalJSON takes null or an object with a guid, in Cloud Controller's words.
func (g *routerGroup) UnmarshalJSON(b []byte) error {
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return cf.Unprocessable("Router group must be an object")
	}
	if m == nil {
		return nil
	}
	guid, isText := m["guid"].(string)
	delete(m, "guid")
	var faults []string
	if len(m) > 0 {
		faults = append(faults, "Router group Unknown field(s): '"+strings.Join(slices.Sorted(maps.Keys(m)), "', '")+"'")
	}
	if !isText {
		faults = append(faults, "Router group guid must be a string")
	}
	g.GUID = guid
	return control.Invalid(faults)
}
