package api

import (
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/routes"
	"cupola/store"
	"cupola/store/cf"
)

func viewRoutePolicy(c *call, p *cf.RoutePolicy) doc {
	links := doc{"self": c.link("/v3/route_policies/%s", p.GUID), "route": c.link("/v3/routes/%s", p.RouteGUID)}
	relationships := doc{"route": toOne(p.RouteGUID)}
	for kind, name := range map[string]string{"app": "app", "space": "space", "org": "organization"} {
		guid := p.SourceGUID(kind)
		relationships[name] = toOne(guid)
		if guid != "" {
			links[name] = c.link("/v3/%ss/%s", name, guid)
		}
	}
	return with(resource(p.Resource), doc{"source": p.Source, "metadata": metadata(p.Metadata), "relationships": relationships, "links": links})
}

const policyIncludes = "include=route|source"

var (
	listRoutePolicies = inTx(func(c *call) (*response, error) {
		for _, s := range splitList(c.Request.URL.Query().Get("sources")) {
			if s != "" && !cf.IsSource(s) {
				return nil, badQuery("Sources contains invalid source format: %s", s)
			}
		}
		return c.listRoutePolicies()
	})
	showRoutePolicy = inTx(func(c *call) (*response, error) {
		q, err := parseQuery(c.Request.URL.Query(), noRows{}, policyIncludes)
		if err != nil {
			return nil, err
		}
		p, err := store.RoutePolicies.Visible(c.Tx, c.guid(), c.Scope)
		if err != nil {
			return nil, err
		}
		d := viewRoutePolicy(c, p)
		return &response{body: d}, c.includeOfPolicies(d, []*cf.RoutePolicy{p}, q.include)
	})
)

func (c *call) listRoutePolicies() (*response, error) {
	q, err := parseQuery(c.Request.URL.Query(), store.RoutePolicies, policyIncludes)
	if err != nil {
		return nil, err
	}
	q.Visible = c.Scope
	found, total, err := store.RoutePolicies.List(c.Tx, q.Query)
	if err != nil {
		return nil, err
	}
	d := page(c, q, found, total, viewRoutePolicy)
	return &response{body: d}, c.includeOfPolicies(d, found, q.include)
}

// includeOfPolicies adds routes, and of the sources what is there and the actor
// sees: "source" includes three kinds of things.
func (c *call) includeOfPolicies(d doc, rows []*cf.RoutePolicy, names []string) error {
	if len(names) == 0 {
		return nil
	}
	included := doc{}
	d["included"] = included
	for _, name := range names {
		if name == "route" {
			docs, err := including(c, store.Routes, viewRoute, control.GUIDs(rows, func(p *cf.RoutePolicy) string { return p.RouteGUID }))
			if err != nil {
				return err
			}
			included["routes"] = docs
			continue
		}
		of := func(kind string) []string {
			return control.GUIDs(rows, func(p *cf.RoutePolicy) string { return p.SourceGUID(kind) })
		}
		if err := c.includeSources(included, of); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) includeSources(included doc, of func(kind string) []string) (err error) {
	if included["apps"], err = seen(c, store.Apps, viewApp, of("app")); err != nil {
		return err
	}
	if included["spaces"], err = seen(c, store.Spaces, viewSpace, of("space")); err != nil {
		return err
	}
	included["organizations"], err = seen(c, store.Orgs, viewOrg, of("org"))
	return err
}

// seen are the rows with the GUIDs that the actor sees.
func seen[T any](c *call, t *store.Table[T], v view[T], guids []string) ([]doc, error) {
	rows, _, err := t.List(c.Tx, store.Query{Where: map[string][]string{"guids": guids}, Visible: c.Scope})
	return views(c, rows, v), err
}

type routePolicyRequest struct {
	Source        change.Field[string] `json:"source"`
	Metadata      *change.Metadata     `json:"metadata"`
	Relationships struct {
		Route ref `json:"route"`
	} `json:"relationships"`
}

func (r routePolicyRequest) Validate() []string {
	return control.Must(r.Source.V != "", "Source can't be blank",
		r.Source.V == "" || cf.IsSource(r.Source.V), "Source must be in format 'cf:app:<uuid>', 'cf:space:<uuid>', 'cf:org:<uuid>', or 'cf:any'",
		r.Relationships.Route.guid() != "", "Relationships Route can't be blank")
}

func createRoutePolicy(c *call) (*response, error) {
	var req routePolicyRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	r, err := store.Routes.Visible(c.Tx, req.Relationships.Route.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	if _, err := c.InSpace(r.SpaceGUID); err != nil {
		return nil, err
	}
	p := &cf.RoutePolicy{RouteGUID: r.GUID, Source: req.Source.V}
	if err := routes.PolicyFits(c.Session, p, r); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return nil, err
	}
	if err := store.RoutePolicies.Insert(c.Tx, p); err != nil {
		return nil, err
	}
	if err := routes.PolicyEvent(c.Session, audit.RoutePolicyCreate, p, r, doc{"request": doc{"source": p.Source, "route_guid": r.GUID}}); err != nil {
		return nil, err
	}
	return created(viewRoutePolicy(c, p))
}

// ownPolicy is the policy of {guid} and its route, if the actor sees it and
// satisfies the rule.
func (c *call) ownPolicy() (*cf.RoutePolicy, *cf.Route, error) {
	p, err := store.RoutePolicies.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, nil, err
	}
	r, err := store.Routes.Get(c.Tx, p.RouteGUID)
	if err != nil {
		return nil, nil, err
	}
	_, err = c.InSpace(r.SpaceGUID)
	return p, r, err
}

func updateRoutePolicy(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata `json:"metadata"`
	}
	p, r, err := c.ownPolicy()
	if err != nil {
		return nil, err
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return nil, err
	}
	if err := store.RoutePolicies.Update(c.Tx, p); err != nil {
		return nil, err
	}
	if err := routes.PolicyEvent(c.Session, audit.RoutePolicyUpdate, p, r, nil); err != nil {
		return nil, err
	}
	return ok(viewRoutePolicy(c, p))
}

func deleteRoutePolicy(c *call) (*response, error) {
	p, r, err := c.ownPolicy()
	if err != nil {
		return nil, err
	}
	if err := store.RoutePolicies.Delete(c.Tx, p.GUID); err != nil {
		return nil, err
	}
	if err := routes.PolicyEvent(c.Session, audit.RoutePolicyDelete, p, r, nil); err != nil {
		return nil, err
	}
	return noContent()
}
