package api

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/deletion"
	"cupola/server/control/routes"
	"cupola/store"
	"cupola/store/cf"
)

func viewDomain(c *call, d *cf.Domain) doc {
	links := doc{
		"self":               c.link("/v3/domains/%s", d.GUID),
		"route_reservations": c.link("/v3/domains/%s/route_reservations", d.GUID),
	}
	if d.OrgGUID != "" {
		links["organization"] = c.link("/v3/organizations/%s", d.OrgGUID)
		links["shared_organizations"] = c.link("/v3/domains/%s/relationships/shared_organizations", d.GUID)
	}
	var group any
	if d.TCP() {
		group = doc{"guid": d.RouterGroupGUID}
		links["router_group"] = c.link("/routing/v1/router_groups/%s", d.RouterGroupGUID)
	}
	out := with(resource(d.Resource), doc{
		"name": d.Name, "internal": d.Internal, "router_group": group, "supported_protocols": []string{d.Protocol()}, "metadata": metadata(d.Metadata),
		"relationships": doc{"organization": toOne(d.OrgGUID), "shared_organizations": toMany(c.visibleOrgs(d.SharedOrgs))},
		"links":         links,
	})
	if d.EnforcesPolicies {
		out["enforce_route_policies"], out["route_policies_scope"] = true, d.PoliciesScope
	}
	return out
}

// visibleOrgs are those of the orgs that the actor sees.
func (c *call) visibleOrgs(guids []string) []string {
	if c.Scope == nil {
		return guids
	}
	return control.Without(guids, func(g string) bool { return !slices.Contains(c.Scope.Orgs, g) })
}

type domainRequest struct {
	Name          string             `json:"name"`
	Internal      change.Field[bool] `json:"internal"`
	RouterGroup   routerGroup        `json:"router_group"`
	Enforce       change.Field[bool] `json:"enforce_route_policies"`
	Scope         change.Field[any]  `json:"route_policies_scope"`
	Metadata      *change.Metadata   `json:"metadata"`
	Relationships struct {
		Organization ref  `json:"organization"`
		SharedOrgs   refs `json:"shared_organizations"`
	} `json:"relationships"`
}

var domainPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+$`)

func (r domainRequest) Validate() []string {
	return control.Must(r.Name != "", "Name can't be blank",
		len(r.Name) >= 3 && len(r.Name) <= 253, "Name is too short (minimum is 3 characters)",
		domainPattern.MatchString(r.Name), "Name does not comply with RFC 1035 standards",
		r.Relationships.Organization.guid() != "" || len(r.Relationships.SharedOrgs.Data) == 0, "Relationships cannot contain shared_organizations without an owning organization.",
		!r.Internal.V || r.Relationships.Organization.guid() == "", "Cannot associate an internal domain with an organization",
		!r.Internal.V || r.RouterGroup.GUID == "", "Internal domains cannot be associated to a router group.",
		!r.Internal.V || !r.Enforce.V, "Internal domains cannot have route policy enforcement. Internal routes bypass GoRouter.",
		r.RouterGroup.GUID == "" || !r.Enforce.V, "Domains with a router group cannot have route policy enforcement. TCP routes do not support mTLS policy enforcement.",
		r.Scope.V == nil || r.scope() != "", "Route policies scope must be one of 'any', 'org', 'space'",
		!r.Enforce.V || r.Scope.V != nil, "Route policies scope is required when enforce_route_policies is true",
		r.Relationships.Organization.guid() == "" || r.RouterGroup.GUID == "", "Domains scoped to an organization cannot be associated to a router group.")
}

// scope is that of the domain's policies; "" for none, or one that is none.
func (r domainRequest) scope() string {
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

func createDomain(c *call) (*response, error) {
	var req domainRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	d := &cf.Domain{Name: strings.ToLower(req.Name), Internal: req.Internal.V, RouterGroupGUID: req.RouterGroup.GUID, EnforcesPolicies: req.Enforce.V, PoliciesScope: req.scope(),
		OrgGUID: req.Relationships.Organization.guid(), SharedOrgs: req.Relationships.SharedOrgs.guids()}
	if err := routes.CreateDomain(c.Session, d, req.Metadata); err != nil {
		return nil, err
	}
	return created(viewDomain(c, d))
}

// domain is the domain of {guid}, if the actor sees it and satisfies the rule.
func (c *call) domain() (*cf.Domain, error) {
	d, err := store.Domains.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	if d.OrgGUID == "" && c.writes() {
		return d, routes.DomainPlace(c.Session, "")
	}
	return d, c.Permit(authz.Place{OrgGUID: d.OrgGUID})
}

func updateDomain(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	d, err := c.domain()
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&d.Metadata); err != nil {
		return nil, err
	}
	if err := store.Domains.Update(c.Tx, d); err != nil {
		return nil, err
	}
	return ok(viewDomain(c, d))
}

func deleteDomain(c *call) (*response, error) {
	d, err := c.domain()
	if err != nil {
		return nil, err
	}
	return c.deletes(deletion.Domain, "domains", d.GUID)
}

func listOrgDomains(c *call) (*response, error) {
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Domains, viewDomain, func(q *listQuery) error {
		q.Where["usable_by_organization_guids"] = []string{o.GUID}
		return nil
	})
}

func showDefaultDomain(c *call) (*response, error) {
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	d, err := routes.DefaultDomain(c.Session, o.GUID)
	if err != nil {
		return nil, err
	}
	if d, err = store.Domains.Visible(c.Tx, d.GUID, c.Scope); err != nil {
		return nil, err
	}
	return ok(viewDomain(c, d))
}

func shareDomain(c *call) (*response, error) {
	var req refs
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	d, err := c.domain()
	if err != nil {
		return nil, err
	}
	if err := routes.ShareDomain(c.Session, d, req.guids()); err != nil {
		return nil, err
	}
	return ok(toMany(c.visibleOrgs(d.SharedOrgs)))
}

// unshareDomain takes a share back, or leaves one: either org's manager may.
func unshareDomain(c *call) (*response, error) {
	d, err := store.Domains.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	place := authz.Place{OrgGUID: d.OrgGUID}
	if !c.Actor.May(c.Rule, place) {
		place.OrgGUID = c.param("org")
	}
	if err := c.Permit(place); err != nil {
		return nil, err
	}
	if err := routes.UnshareDomain(c.Session, d, c.param("org")); err != nil {
		return nil, err
	}
	return noContent()
}

// showReservation tells whether a route exists, in any space.
func showReservation(c *call) (*response, error) {
	d, err := c.domain()
	if err != nil {
		return nil, err
	}
	q := c.Request.URL.Query()
	n, err := store.Routes.Count(c.Tx, store.Query{Where: map[string][]string{"domain_guids": {d.GUID}, "hosts": {q.Get("host")}, "paths": {q.Get("path")}, "ports": {q.Get("port")}}})
	if err != nil {
		return nil, err
	}
	return ok(doc{"matching_route": n > 0})
}
