package api

import (
	"net/http"
	"slices"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/quota"
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
	return r, uri(r, d), nil
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
	if err := c.routeShareable(uri, guids); err != nil {
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
	return &response{body: viewRouteShares(c, r)}, c.routeEventWith(audit.RouteShare, r, r.SpaceGUID, doc{"target_space_guids": guids})
}

// routeShareable refuses spaces in which the actor may not write.
func (c *call) routeShareable(uri string, guids []string) error {
	var unseen, unwritable []string
	for _, g := range guids {
		s, err := store.Spaces.Visible(c.Tx, g, c.Scope)
		if store.IsNotFound(err) {
			unseen = append(unseen, "'"+g+"'")
			continue
		}
		if err != nil {
			return err
		}
		org, err := store.Orgs.Get(c.Tx, s.OrgGUID)
		if err != nil {
			return err
		}
		if !c.MayDevelop(s) || org.Suspended && !c.Actor.Admin {
			unwritable = append(unwritable, "'"+g+"'")
		}
	}
	var messages []string
	if unseen != nil {
		messages = append(messages, "Unable to share route "+uri+" with spaces ["+strings.Join(unseen, ", ")+"]. Ensure the spaces exist and that you have access to them.")
	}
	if unwritable != nil {
		messages = append(messages, "Unable to share route "+uri+" with spaces ["+strings.Join(unwritable, ", ")+
			"]. Write permission is required in order to share a route with a space and the containing organization must not be suspended.")
	}
	if messages == nil {
		return nil
	}
	return cf.Unprocessable("%s", strings.Join(messages, "\n"))
}

func unshareRoute(c *call) (*response, error) {
	r, uri, err := c.sharedRoute()
	if err != nil {
		return nil, err
	}
	space := c.param("space")
	if _, err := c.accessible(space, "Unable to unshare route '"+uri+"' from space '"+space+"'. "); err != nil {
		return nil, err
	}
	if space == r.SpaceGUID {
		return nil, cf.Unprocessable("Unable to unshare route '%s' from space '%s'. Routes cannot be removed from the space that owns them.", uri, space)
	}
	r.SharedSpaces = control.Without(r.SharedSpaces, func(g string) bool { return g == space })
	if err := store.Routes.Update(c.Tx, r); err != nil {
		return nil, err
	}
	if err := c.routeEventWith(audit.RouteUnshare, r, r.SpaceGUID, doc{"target_space_guid": space}); err != nil {
		return nil, err
	}
	return noContent()
}

// accessible is a space in which the actor can run apps; complaint begins what
// is said of others.
func (c *call) accessible(guid, complaint string) (*cf.Space, error) {
	s, err := store.Spaces.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, control.Unprocessable(err, "%sEnsure the space exists and that you have access to it.", complaint)
	}
	if !c.Actor.May(authz.SpaceOperator, access.At(s)) {
		return nil, cf.Unprocessable("%sYou don't have write permission for the target space.", complaint)
	}
	org, err := store.Orgs.Get(c.Tx, s.OrgGUID)
	if err == nil && org.Suspended && !c.Actor.Admin {
		err = cf.Unprocessable("%sThe target organization or space is suspended.", complaint)
	}
	return s, err
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
	space, err := c.accessible(to, complaint)
	if err != nil {
		return nil, err
	}
	if _, err := c.usableDomain(r.DomainGUID, space); err != nil {
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
	return &response{body: doc{"status": "ok"}}, c.routeEventWith(audit.RouteTransferOwner, r, from, doc{"target_space_guid": to})
}

// leaveRoutes takes a space that goes away out of the shares of routes.
func leaveRoutes(c *call, space string) error {
	return control.EachOf(c.Session, store.Routes, "shared_space_guids", space, func(r *cf.Route) error {
		r.SharedSpaces = control.Without(r.SharedSpaces, func(g string) bool { return g == space })
		return store.Routes.Update(c.Tx, r)
	})
}
