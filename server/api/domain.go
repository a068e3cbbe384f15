package api

import (
	"cupola/server/authz"
	"cupola/server/control"
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
		"relationships": doc{"organization": toOne(d.OrgGUID), "shared_organizations": toMany(visibleOrgs(c, d.SharedOrgs))},
		"links":         links,
	})
	if d.EnforcesPolicies {
		out["enforce_route_policies"], out["route_policies_scope"] = true, d.PoliciesScope
	}
	return out
}

// visibleOrgs are those of the orgs that the actor sees.
func visibleOrgs(c *call, guids []string) []string {
	if c.Scope == nil {
		return guids
	}
	return among(guids, c.Scope.Orgs)
}

var findDomain = at(store.Domains, func(d *cf.Domain) authz.Place { return authz.Place{OrgGUID: d.OrgGUID} })

func metadataOfDomain(d *cf.Domain) *cf.Metadata { return &d.Metadata }

func showDefaultDomain(c *call) (*response, error) {
	o, err := findOrg(c)
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

func viewDomainShares(c *call, d *cf.Domain) doc { return toMany(visibleOrgs(c, d.SharedOrgs)) }

// findSharedDomain finds the domain of {guid} for one who takes a share back, or leaves
// one: either org's manager may.
func findSharedDomain(c *call) (*cf.Domain, error) {
	return control.Find(c.Session, store.Domains, c.guid(), func(d *cf.Domain) authz.Place {
		own := authz.Place{OrgGUID: d.OrgGUID}
		if c.Actor.May(c.Rule, own) {
			return own
		}
		return authz.Place{OrgGUID: c.param("org")}
	})
}

// showReservation reports whether a route exists, in any space.
func showReservation(c *call) (*response, error) {
	d, err := findDomain(c)
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
