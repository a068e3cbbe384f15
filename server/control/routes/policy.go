package routes

import (
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// NewPolicy is a route policy to be made.
type NewPolicy struct {
	Source        change.Field[string] `json:"source"`
	Metadata      *change.Metadata     `json:"metadata"`
	Relationships struct {
		Route change.ToOne `json:"route"`
	} `json:"relationships"`
}

// Validate lists what is wrong with the policy, in Cloud Controller's words.
func (r NewPolicy) Validate() []string {
	return control.Must(r.Source.V != "", "Source can't be blank",
		r.Source.V == "" || cf.IsSource(r.Source.V), "Source must be in format 'cf:app:<uuid>', 'cf:space:<uuid>', 'cf:org:<uuid>', or 'cf:any'",
		r.Relationships.Route.GUID() != "", "Relationships Route can't be blank")
}

// CreatePolicy lets a source call a route.
func CreatePolicy(c *control.Session, req NewPolicy) (*cf.RoutePolicy, error) {
	r, err := Find(c, req.Relationships.Route.GUID())
	if err != nil {
		return nil, err
	}
	p := &cf.RoutePolicy{RouteGUID: r.GUID, Source: req.Source.V}
	if err := policyFits(c, p, r); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return nil, err
	}
	if err := store.RoutePolicies.Insert(c.Tx, p); err != nil {
		return nil, err
	}
	return p, policyEvent(c, audit.RoutePolicyCreate, p, c.Request(audit.Data{"source": p.Source, "route_guid": r.GUID}))
}

// FindPolicy is a route policy, if the actor sees it and satisfies the rule in its
// route's space.
func FindPolicy(c *control.Session, guid string) (*cf.RoutePolicy, error) {
	p, err := store.RoutePolicies.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, err
	}
	r, err := store.Routes.Get(c.Tx, p.RouteGUID)
	if err != nil {
		return nil, err
	}
	_, err = c.InSpace(r.SpaceGUID)
	return p, err
}

// UpdatePolicy changes the labels and annotations of a route policy.
func UpdatePolicy(c *control.Session, p *cf.RoutePolicy, req change.Labels) error {
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return err
	}
	if err := store.RoutePolicies.Update(c.Tx, p); err != nil {
		return err
	}
	return policyEvent(c, audit.RoutePolicyUpdate, p, c.Request(c.Asked))
}

// DeletePolicy deletes a route policy.
func DeletePolicy(c *control.Session, p *cf.RoutePolicy) error {
	if err := store.RoutePolicies.Delete(c.Tx, p.GUID); err != nil {
		return err
	}
	return policyEvent(c, audit.RoutePolicyDelete, p, nil)
}

// policyFits says in Cloud Controller's words why a route cannot have a policy.
func policyFits(c *control.Session, p *cf.RoutePolicy, r *cf.Route) error {
	d, err := store.Domains.Get(c.Tx, r.DomainGUID)
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
	have, err := store.RoutePolicies.By(c.Tx, "route_guids", r.GUID)
	if err != nil {
		return err
	}
	return conflict(p, have)
}

// conflict says why a policy cannot be added to those of its route.
func conflict(p *cf.RoutePolicy, have []*cf.RoutePolicy) error {
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

// policyEvent records an event of a route policy, in its route's space.
func policyEvent(c *control.Session, kind audit.Type, p *cf.RoutePolicy, data audit.Data) error {
	r, err := store.Routes.Get(c.Tx, p.RouteGUID)
	if err != nil {
		return err
	}
	space, err := store.Spaces.Get(c.Tx, r.SpaceGUID)
	if err != nil {
		return err
	}
	return c.Audit(kind, audit.Target{Type: "route_policy", GUID: p.GUID, Name: p.Source, Place: access.At(space)}, data)
}
