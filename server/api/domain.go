package api

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/quota"
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
	Name          string         `json:"name"`
	Internal      opt[bool]      `json:"internal"`
	RouterGroup   routerGroup    `json:"router_group"`
	Enforce       opt[bool]      `json:"enforce_route_policies"`
	Scope         opt[any]       `json:"route_policies_scope"`
	Metadata      *metadataPatch `json:"metadata"`
	Relationships struct {
		Organization ref  `json:"organization"`
		SharedOrgs   refs `json:"shared_organizations"`
	} `json:"relationships"`
}

var domainPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+$`)

func (r domainRequest) validate() []string {
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

// routerGroup refuses a group that there is not.
func (c *call) routerGroup(g routerGroup) error {
	switch {
	case g.GUID == "":
		return nil
	case len(c.Platform.TCPPorts) == 0:
		return routingDisabled()
	case g.GUID != cf.DefaultTCPGUID:
		return cf.Unprocessable("Router group with guid '%s' not found.", g.GUID)
	}
	return nil
}

func createDomain(c *call) (*response, error) {
	var req domainRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	d := &cf.Domain{Name: strings.ToLower(req.Name), Internal: req.Internal.V, RouterGroupGUID: req.RouterGroup.GUID, EnforcesPolicies: req.Enforce.V, PoliciesScope: req.scope(), OrgGUID: req.Relationships.Organization.guid(), SharedOrgs: req.Relationships.SharedOrgs.guids()}
	if err := c.domainPlace(d.OrgGUID); err != nil {
		return nil, err
	}
	if d.OrgGUID != "" {
		if err := c.Feature("private_domain_creation"); err != nil {
			return nil, err
		}
	}
	if err := c.shareable(d.OrgGUID, d.SharedOrgs); err != nil {
		return nil, err
	}
	if err := c.routerGroup(req.RouterGroup); err != nil {
		return nil, err
	}
	if err := req.Metadata.apply(&d.Metadata); err != nil {
		return nil, err
	}
	taken, err := c.domainNamed(d.Name)
	if err == nil && taken != nil {
		err = cf.Unprocessable(`The domain name "%s" is already in use`, d.Name)
	}
	if err == nil {
		err = c.domainFree(d)
	}
	if err != nil {
		return nil, err
	}
	if err := quota.WithinOrg(c.Tx, d.OrgGUID, quota.Domains, func() error { return store.Domains.Insert(c.Tx, d) }); err != nil {
		return nil, err
	}
	if err := c.Audit(audit.DomainCreate, audit.Target{Type: "domain", GUID: d.GUID, Name: d.Name, Place: authz.Place{OrgGUID: d.OrgGUID}}, nil); err != nil {
		return nil, err
	}
	return created(viewDomain(c, d))
}

// domainPlace checks the rule: a shared domain is an admin's to make, a
// private one its org's manager's.
func (c *call) domainPlace(org string) error {
	if org == "" {
		c.Checked = true
		if !c.Actor.Admin {
			return access.NotAuthorized()
		}
		return nil
	}
	if _, err := store.Orgs.Visible(c.Tx, org, c.Scope); err != nil {
		c.Checked = true
		return control.Unprocessable(err, "Organization with guid '%s' does not exist or you do not have access to it.", org)
	}
	return c.Permit(authz.Place{OrgGUID: org})
}

// shareable refuses to share a domain with orgs in which the actor may not do
// what he may in its own.
func (c *call) shareable(owner string, orgs []string) error {
	for _, g := range orgs {
		o, err := store.Orgs.Visible(c.Tx, g, c.Scope)
		switch {
		case err != nil:
			return control.Unprocessable(err, "Organization with guid '%s' does not exist, or you do not have access to it.", g)
		case g == owner:
			return cf.Unprocessable("Domain cannot be shared with owning organization.")
		case !c.Actor.May(c.Rule, authz.Place{OrgGUID: g}):
			return cf.Unprocessable("You do not have sufficient permissions for organization '%s' to share domain.", o.Name)
		case o.Suspended && !c.Actor.Admin:
			return cf.Unprocessable("Organization '%s' is suspended.", o.Name)
		}
	}
	return nil
}

// domain is the domain of {guid}, if the actor sees it and satisfies the rule.
func (c *call) domain() (*cf.Domain, error) {
	d, err := store.Domains.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	if d.OrgGUID == "" && c.writes() {
		return d, c.domainPlace("")
	}
	return d, c.Permit(authz.Place{OrgGUID: d.OrgGUID})
}

func updateDomain(c *call) (*response, error) {
	var req struct {
		Metadata *metadataPatch `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	d, err := c.domain()
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.apply(&d.Metadata); err != nil {
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
	return c.deletes(jobDeleteDomain, "domains", d.GUID)
}

// deleteOwnDomain deletes a domain that no other org has.
func deleteOwnDomain(c *call, d *cf.Domain) error {
	if len(d.SharedOrgs) > 0 {
		return cf.Unprocessable("This domain is shared with other organizations. Unshare before deleting.")
	}
	if err := removeDomain(c, d); err != nil {
		return err
	}
	return c.Audit(audit.DomainDelete, audit.Target{Type: "domain", GUID: d.GUID, Name: d.Name, Place: authz.Place{OrgGUID: d.OrgGUID}}, nil)
}

// removeDomain deletes a domain and the routes in it.
func removeDomain(c *call, d *cf.Domain) error {
	if err := control.EachOf(c.Session, store.Routes, "domain_guids", d.GUID, c.dropRoute); err != nil {
		return err
	}
	return store.Domains.Delete(c.Tx, d.GUID)
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
	d, err := c.defaultDomain(o.GUID)
	if err != nil {
		return nil, err
	}
	if d, err = store.Domains.Visible(c.Tx, d.GUID, c.Scope); err != nil {
		return nil, err
	}
	return ok(viewDomain(c, d))
}

// defaultDomain is the first shared domain for routes from outside, else the
// org's first.
func (c *call) defaultDomain(org string) (*cf.Domain, error) {
	domains, err := store.Domains.By(c.Tx, "usable_by_organization_guids", org)
	if err != nil {
		return nil, err
	}
	domains = control.Without(domains, func(d *cf.Domain) bool { return d.Internal || d.TCP() })
	if i := slices.IndexFunc(domains, func(d *cf.Domain) bool { return d.OrgGUID == "" }); i >= 0 {
		return domains[i], nil
	}
	if len(domains) == 0 {
		return nil, cf.Errorf(cf.ResourceNotFound, "Domain not found")
	}
	return domains[0], nil
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
	if d.OrgGUID == "" {
		return nil, cf.Unprocessable("Domains cannot be shared with other organizations unless they are scoped to an organization.")
	}
	if err := c.shareable(d.OrgGUID, req.guids()); err != nil {
		return nil, err
	}
	for _, g := range req.guids() {
		if !slices.Contains(d.SharedOrgs, g) {
			d.SharedOrgs = append(d.SharedOrgs, g)
		}
	}
	if err := store.Domains.Update(c.Tx, d); err != nil {
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
	if err := c.unshare(d, c.param("org")); err != nil {
		return nil, err
	}
	return noContent()
}

func (c *call) unshare(d *cf.Domain, org string) error {
	o, err := store.Orgs.Visible(c.Tx, org, c.Scope)
	if err != nil {
		return control.Unprocessable(err, "Organization with guid '%s' does not exist or you do not have access to it.", org)
	}
	if !slices.Contains(d.SharedOrgs, org) {
		return cf.Unprocessable("Unable to unshare domain from organization with name '%s'. Ensure the domain is shared to this organization.", o.Name)
	}
	n, err := store.Routes.Count(c.Tx, store.Query{Where: map[string][]string{"domain_guids": {d.GUID}, "organization_guids": {org}}})
	if err == nil && n > 0 {
		err = cf.Unprocessable("This domain has associated routes in this organization. Delete the routes before unsharing.")
	}
	if err != nil {
		return err
	}
	d.SharedOrgs = control.Without(d.SharedOrgs, func(g string) bool { return g == org })
	return store.Domains.Update(c.Tx, d)
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
