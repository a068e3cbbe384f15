package api

import (
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/routes"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

func viewRoute(c *call, r *cf.Route) doc {
	url, protocol := "", "http"
	if d, err := recall(c, store.Domains, r.DomainGUID); err == nil {
		url, protocol = desire.URI(r, d), d.Protocol()
	}
	var port any
	if r.Port > 0 {
		port = r.Port
	}
	return with(resource(r.Resource), doc{
		"protocol": protocol, "host": r.Host, "path": r.Path, "port": port, "url": url, "metadata": metadata(r.Metadata),
		"destinations": viewDestinations(r), "options": orEmptyAny(r.Options),
		"relationships": doc{"space": toOne(r.SpaceGUID), "domain": toOne(r.DomainGUID), "shared_spaces": toMany(r.SharedSpaces)},
		"links": doc{
			"self":         c.link("/v3/routes/%s", r.GUID),
			"space":        c.link("/v3/spaces/%s", r.SpaceGUID),
			"domain":       c.link("/v3/domains/%s", r.DomainGUID),
			"destinations": c.link("/v3/routes/%s/destinations", r.GUID),
		},
	})
}

func orEmptyAny(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// findRoute finds the route of {guid}.
func findRoute(c *call) (*cf.Route, error) { return routes.Find(c.Session, c.guid()) }

func updateRoute(c *call) (*response, error) {
	var req struct {
		Options  change.Field[any] `json:"options"`
		Metadata *change.Metadata  `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	options, err := routes.ReadOptions(c.Session, req.Options)
	if err != nil {
		return nil, err
	}
	r, err := findRoute(c)
	if err != nil {
		return nil, err
	}
	if err := routes.Update(c.Session, r, options, req.Metadata); err != nil {
		return nil, err
	}
	return ok(viewRoute(c, r))
}

// findUnmapped finds the space whose unmapped routes the request deletes.
func findUnmapped(c *call) (*cf.Space, error) {
	if err := checkQuery(c); err != nil {
		return nil, err
	}
	return findSpace(c)
}

const routeIncludes = "include=domain|space|space.organization|route_policies"

func includeOfRoutes(c *call, rows []*cf.Route, what string) (string, []doc, error) {
	spaces := control.GUIDs(rows, func(r *cf.Route) string { return r.SpaceGUID })
	switch what {
	case "domain":
		docs, err := including(c, store.Domains, viewDomain, control.GUIDs(rows, func(r *cf.Route) string { return r.DomainGUID }))
		return "domains", docs, err
	case "route_policies":
		policies, err := store.RoutePolicies.By(c.Tx, "route_guids", control.GUIDs(rows, func(r *cf.Route) string { return r.GUID })...)
		return "route_policies", views(c, policies, viewRoutePolicy), err
	case "space":
		docs, err := including(c, store.Spaces, viewSpace, spaces)
		return "spaces", docs, err
	}
	docs, err := includingOrgsOf(c, spaces)
	return "organizations", docs, err
}

var listRoutes = inTx(func(c *call) (*response, error) {
	return listIncluding(c, store.Routes, viewRoute, includeOfRoutes, routeIncludes)
})
