package routes

import (
	"slices"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

// permitDomain checks the rule: a shared domain is an admin's to make, a private one
// its org's manager's.
func permitDomain(c *control.Session, org string) error {
	if org != "" {
		if _, err := store.Orgs.Visible(c.Tx, org, c.Scope); err != nil {
			return control.Unprocessable(err, "Organization with guid '%s' does not exist or you do not have access to it.", org)
		}
	}
	return c.Permit(authz.Place{OrgGUID: org})
}

// domainShareable refuses to share a domain with orgs in which the actor may not do
// what he may in its own.
func domainShareable(c *control.Session, owner string, orgs []string) error {
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

// DeleteDomain deletes a domain that no other org has.
func DeleteDomain(c *control.Session, d *cf.Domain) error {
	if len(d.SharedOrgs) > 0 {
		return cf.Unprocessable("This domain is shared with other organizations. Unshare before deleting.")
	}
	if err := RemoveDomain(c, d); err != nil {
		return err
	}
	return domainEvent(c, audit.DomainDelete, d)
}

// RemoveDomain deletes a domain and the routes in it.
func RemoveDomain(c *control.Session, d *cf.Domain) error {
	if err := control.EachOf(c, store.Routes, "domain_guids", d.GUID, func(r *cf.Route) error { return Drop(c, r) }); err != nil {
		return err
	}
	return store.Domains.Delete(c.Tx, d.GUID)
}

// DefaultDomain is the first shared domain for routes from outside, else the
// org's first.
func DefaultDomain(c *control.Session, org string) (*cf.Domain, error) {
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

// UnshareDomain takes a domain from an org that it was shared with.
func UnshareDomain(c *control.Session, d *cf.Domain, org string) error {
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
	d.SharedOrgs = control.Drop(d.SharedOrgs, org)
	return store.Domains.Update(c.Tx, d)
}

// CreateDomain adds a domain.
func CreateDomain(c *control.Session, req NewDomain) (*cf.Domain, error) {
	d := &cf.Domain{Name: strings.ToLower(req.Name), Internal: req.Internal.V, RouterGroupGUID: req.RouterGroup.GUID, EnforcesPolicies: req.Enforce.V, PoliciesScope: req.scope(),
		OrgGUID: req.Relationships.Organization.GUID(), SharedOrgs: req.Relationships.SharedOrgs.GUIDs()}
	if err := mayCreate(c, d); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&d.Metadata); err != nil {
		return nil, err
	}
	taken, err := domainNamed(c, d.Name)
	if err == nil && taken != nil {
		err = cf.Unprocessable(`The domain name "%s" is already in use`, d.Name)
	}
	if err == nil {
		err = domainFree(c, d)
	}
	if err == nil {
		err = quota.WithinOrg(c, d.OrgGUID, quota.Domains, func() error { return store.Domains.Insert(c.Tx, d) })
	}
	if err != nil {
		return nil, err
	}
	return d, domainEvent(c, audit.DomainCreate, d)
}

// mayCreate refuses a domain that the actor may not make, or share as is asked for.
func mayCreate(c *control.Session, d *cf.Domain) error {
	if err := permitDomain(c, d.OrgGUID); err != nil {
		return err
	}
	if d.OrgGUID != "" {
		if err := c.Feature("private_domain_creation"); err != nil {
			return err
		}
	}
	if err := domainShareable(c, d.OrgGUID, d.SharedOrgs); err != nil {
		return err
	}
	return groupFits(c, d.RouterGroupGUID)
}

func domainEvent(c *control.Session, kind audit.Type, d *cf.Domain) error {
	return c.Audit(kind, audit.Target{Type: "domain", GUID: d.GUID, Name: d.Name, Place: authz.Place{OrgGUID: d.OrgGUID}}, nil)
}

// groupFits refuses a router group that there is not, or that gives no ports; "" is
// none.
func groupFits(c *control.Session, guid string) error {
	if guid == "" {
		return nil
	}
	if len(c.Platform.TCPPorts) == 0 {
		return routingDisabled()
	}
	g, err := FindGroup(c, guid)
	switch {
	case err != nil:
		return err
	case g == nil:
		return cf.Unprocessable("Router group with guid '%s' not found.", guid)
	case g.Type != groupTCP:
		return cf.Unprocessable("Router group with guid '%s' is of type '%s'. Domains for HTTP routes need no router group.", guid, g.Type)
	}
	return nil
}

// ShareDomain lets orgs have routes in a private domain.
func ShareDomain(c *control.Session, d *cf.Domain, orgs []string) error {
	if d.OrgGUID == "" {
		return cf.Unprocessable("Domains cannot be shared with other organizations unless they are scoped to an organization.")
	}
	if err := domainShareable(c, d.OrgGUID, orgs); err != nil {
		return err
	}
	d.SharedOrgs = control.Union(d.SharedOrgs, orgs)
	return store.Domains.Update(c.Tx, d)
}
