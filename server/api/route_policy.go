package api

import (
	"cupola/server/control"
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

const policyIncludes = "include=source|route"

var listRoutePolicies = inTx(func(c *call) (*response, error) {
	return listIncluding(c, store.RoutePolicies, viewRoutePolicy, includeOfPolicies, policyIncludes)
})

// includeOfPolicies gives routes, and of the sources what is there and the actor sees.
func includeOfPolicies(c *call, rows []*cf.RoutePolicy, what string) (string, []doc, error) {
	of := func(kind string) []string {
		return control.GUIDs(rows, func(p *cf.RoutePolicy) string { return p.SourceGUID(kind) })
	}
	switch what {
	case "route":
		docs, err := including(c, store.Routes, viewRoute, control.GUIDs(rows, func(p *cf.RoutePolicy) string { return p.RouteGUID }))
		return "routes", docs, err
	case "source.app":
		docs, err := seen(c, store.Apps, viewApp, of("app"))
		return "apps", docs, err
	case "source.space":
		docs, err := seen(c, store.Spaces, viewSpace, of("space"))
		return "spaces", docs, err
	}
	docs, err := seen(c, store.Orgs, viewOrg, of("org"))
	return "organizations", docs, err
}

// seen are the rows with the GUIDs that the actor sees.
func seen[T any](c *call, t *store.Table[T], v view[T], guids []string) ([]doc, error) {
	rows, _, err := t.List(c.Tx, store.Query{Where: map[string][]string{"guids": guids}, Visible: c.Scope})
	return views(c, rows, v), err
}

// findRoutePolicy finds the route policy of {guid}.
func findRoutePolicy(c *call) (*cf.RoutePolicy, error) {
	return routes.FindPolicy(c.Session, c.guid())
}
