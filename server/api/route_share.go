package api

import "cupola/store/cf"

func viewRouteShares(c *call, r *cf.Route) doc {
	return with(toMany(r.SharedSpaces), doc{"links": doc{"self": c.link("/v3/routes/%s/relationships/shared_spaces", r.GUID)}})
}

// findSharedRoute finds the route of {guid}, if routes can be shared.
func findSharedRoute(c *call) (*cf.Route, error) {
	if err := c.Feature("route_sharing"); err != nil {
		return nil, err
	}
	return findRoute(c)
}

func viewMoved(*call, *cf.Route) doc { return doc{"status": "ok"} }
