package api

import (
	"cupola/server/control/routes"
	"cupola/store/cf"
)

func viewRouteShares(c *call, r *cf.Route) doc {
	return with(toMany(r.SharedSpaces), doc{"links": doc{"self": c.link("/v3/routes/%s/relationships/shared_spaces", r.GUID)}})
}

func showRouteShares(c *call) (*response, error) {
	r, err := c.sharedRoute()
	if err != nil {
		return nil, err
	}
	return ok(viewRouteShares(c, r))
}

// sharedRoute is the route of {guid} for one who may share it.
func (c *call) sharedRoute() (*cf.Route, error) {
	if err := c.Feature("route_sharing"); err != nil {
		return nil, err
	}
	return routes.Find(c.Session, c.guid())
}

func shareRoute(c *call) (*response, error) {
	r, err := c.sharedRoute()
	if err != nil {
		return nil, err
	}
	var req refs
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := routes.Share(c.Session, r, req.guids()); err != nil {
		return nil, err
	}
	return ok(viewRouteShares(c, r))
}

func unshareRoute(c *call) (*response, error) {
	r, err := c.sharedRoute()
	if err != nil {
		return nil, err
	}
	if err := routes.Unshare(c.Session, r, c.param("space")); err != nil {
		return nil, err
	}
	return noContent()
}

func moveRoute(c *call) (*response, error) {
	r, err := c.sharedRoute()
	if err != nil {
		return nil, err
	}
	var req ref
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := routes.Move(c.Session, r, req.guid()); err != nil {
		return nil, err
	}
	return ok(doc{"status": "ok"})
}
