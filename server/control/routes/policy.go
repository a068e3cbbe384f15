package routes

import (
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// PolicyFits says in Cloud Controller's words why a route cannot have a policy.
func PolicyFits(c *control.Session, p *cf.RoutePolicy, r *cf.Route) error {
	d, err := store.Domains.Get(c.Tx, r.DomainGUID)
	if err != nil {
		return err
	}
	have, err := store.RoutePolicies.By(c.Tx, "route_guids", r.GUID)
	if err != nil {
		return err
	}
	switch {
	case d.Internal:
		return cf.Unprocessable("Cannot create route policies for routes on internal domains. Internal routes use container-to-container networking and bypass GoRouter.")
	case !d.EnforcesPolicies:
		return cf.Unprocessable("Cannot create route policies for route '%s': the route's domain does not have enforce_route_policies enabled.", r.GUID)
	case d.PoliciesScope == "space" && p.SourceGUID("org") != "":
		return cf.Unprocessable("Source '%s' is not allowed: domain's route_policies_scope is 'space'.", p.Source)
	}
	for _, other := range have {
		switch {
		case other.Source == p.Source:
			return cf.Unprocessable("A route policy with source '%s' already exists for this route.", p.Source)
		case p.Source == cf.AnySource:
			return cf.Unprocessable("source 'cf:any' cannot coexist with other route policies on the same route")
		case other.Source == cf.AnySource:
			return cf.Unprocessable("source cannot coexist with the existing 'cf:any' policy on this route")
		}
	}
	return nil
}

// PolicyEvent records an event of a route policy, in its route's space.
func PolicyEvent(c *control.Session, kind audit.Type, p *cf.RoutePolicy, r *cf.Route, data audit.Data) error {
	space, err := store.Spaces.Get(c.Tx, r.SpaceGUID)
	if err != nil {
		return err
	}
	return c.Audit(kind, audit.Target{Type: "route_policy", GUID: p.GUID, Name: p.Source, Place: access.At(space)}, data)
}
