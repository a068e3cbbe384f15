package api

import (
	"net/http"
	"slices"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/quota"
	"cupola/server/control/routes"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

func viewRouteShares(c *call, r *cf.Route) doc {
	return with(toMany(r.SharedSpaces), doc{"links": doc{"self": c.link("/v3/routes/%s/relationships/shared_spaces", r.GUID)}})
}

func showRouteShares(c *call) (*response, error) {
	if err := c.Feature("route_sharing"); err != nil {
		return nil, err
	}
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	return ok(viewRouteShares(c, r))
}

// sharedRoute is the route of {guid} for one who may share it, and its URI.
func (c *call) sharedRoute() (*cf.Route, string, error) {
	if err := c.Feature("route_sharing"); err != nil {
		return nil, "", err
	}
	r, err := c.appRoute()
	if err != nil {
		return nil, "", err
	}
	d, err := store.Domains.Get(c.Tx, r.DomainGUID)
	if err != nil {
		return nil, "", err
	}
	return r, desire.URI(r, d), nil
}

func shareRoute(c *call) (*response, error) {
	r, uri, err := c.sharedRoute()
	if err != nil {
		return nil, err
	}
	var req refs
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	guids := req.guids()
	if err := routes.Shareable(c.Session, uri, guids); err != nil {
		return nil, err
	}
	if slices.Contains(guids, r.SpaceGUID) {
		return nil, cf.Unprocessable("Unable to share route '%s' with space '%s'. Routes cannot be shared into the space where they were created.", uri, r.SpaceGUID)
	}
	for _, g := range guids {
		if !slices.Contains(r.SharedSpaces, g) {
			r.SharedSpaces = append(r.SharedSpaces, g)
		}
	}
	if err := store.Routes.Update(c.Tx, r); err != nil {
		return nil, err
	}
	return &response{body: viewRouteShares(c, r)}, routes.EventIn(c.Session, audit.RouteShare, r, r.SpaceGUID, doc{"target_space_guids": guids})
}

func unshareRoute(c *call) (*response, error) {
	r, uri, err := c.sharedRoute()
	if err != nil {
		return nil, err
	}
	space := c.param("space")
	if _, err := routes.Accessible(c.Session, space, "Unable to unshare route '"+uri+"' from space '"+space+"'. "); err != nil {
		return nil, err
	}
	if space == r.SpaceGUID {
		return nil, cf.Unprocessable("Unable to unshare route '%s' from space '%s'. Routes cannot be removed from the space that owns them.", uri, space)
	}
	r.SharedSpaces = control.Without(r.SharedSpaces, func(g string) bool { return g == space })
	if err := store.Routes.Update(c.Tx, r); err != nil {
		return nil, err
	}
	if err := routes.EventIn(c.Session, audit.RouteUnshare, r, r.SpaceGUID, doc{"target_space_guid": space}); err != nil {
		return nil, err
	}
	return noContent()
}

// moveRoute gives a route to another space; the one that had it has it as a
// share.
func moveRoute(c *call) (*response, error) {
	r, uri, err := c.sharedRoute()
	if err != nil {
		return nil, err
	}
	var req ref
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	to, from := req.guid(), r.SpaceGUID
	complaint := "Unable to transfer owner of route '" + uri + "' to space '" + to + "'. "
	space, err := routes.Accessible(c.Session, to, complaint)
	if err != nil {
		return nil, err
	}
	if _, err := routes.UsableDomain(c.Session, r.DomainGUID, space); err != nil {
		return nil, cf.Unprocessable("%sTarget space does not have access to route's domain", complaint)
	}
	if to == from {
		return &response{status: http.StatusOK, body: doc{"status": "ok"}}, nil
	}
	r.SpaceGUID, r.SharedSpaces = to, append(control.Without(r.SharedSpaces, func(g string) bool { return g == to }), from)
	err = quota.Within(c.Tx, to, quota.Routes, func() error { return store.Routes.Update(c.Tx, r) })
	if err != nil {
		return nil, err
	}
	return &response{body: doc{"status": "ok"}}, routes.EventIn(c.Session, audit.RouteTransferOwner, r, from, doc{"target_space_guid": to})
}
