package routes

import (
	"slices"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/quota"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// accessible is a space in which the actor can run apps; complaint begins what
// is said of others.
func accessible(c *control.Session, guid, complaint string) (*cf.Space, error) {
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

// Leave takes a space that goes away out of the shares of routes.
func Leave(c *control.Session, space string) error {
	return control.EachOf(c, store.Routes, "shared_space_guids", space, func(r *cf.Route) error {
		r.SharedSpaces = control.Drop(r.SharedSpaces, space)
		return store.Routes.Update(c.Tx, r)
	})
}

// Share lets apps of other spaces be mapped to a route.
func Share(c *control.Session, r *cf.Route, guids []string) error {
	uri, err := uriOf(c, r)
	if err != nil {
		return err
	}
	if _, err := c.ShareTargets("route "+uri, guids, "route with a space and the containing organization must not be suspended."); err != nil {
		return err
	}
	if slices.Contains(guids, r.SpaceGUID) {
		return cf.Unprocessable("Unable to share route '%s' with space '%s'. Routes cannot be shared into the space where they were created.", uri, r.SpaceGUID)
	}
	r.SharedSpaces = control.Union(r.SharedSpaces, guids)
	if err := store.Routes.Update(c.Tx, r); err != nil {
		return err
	}
	return eventIn(c, audit.RouteShare, r, r.SpaceGUID, audit.Data{"target_space_guids": guids})
}

// Unshare takes a route from a space that it was shared with.
func Unshare(c *control.Session, r *cf.Route, space string) error {
	uri, err := uriOf(c, r)
	if err != nil {
		return err
	}
	if _, err := accessible(c, space, "Unable to unshare route '"+uri+"' from space '"+space+"'. "); err != nil {
		return err
	}
	if space == r.SpaceGUID {
		return cf.Unprocessable("Unable to unshare route '%s' from space '%s'. Routes cannot be removed from the space that owns them.", uri, space)
	}
	r.SharedSpaces = control.Drop(r.SharedSpaces, space)
	if err := store.Routes.Update(c.Tx, r); err != nil {
		return err
	}
	return eventIn(c, audit.RouteUnshare, r, r.SpaceGUID, audit.Data{"target_space_guid": space})
}

// Move gives a route to another space; the one that had it has it as a share.
func Move(c *control.Session, r *cf.Route, to string) error {
	uri, err := uriOf(c, r)
	if err != nil {
		return err
	}
	from := r.SpaceGUID
	complaint := "Unable to transfer owner of route '" + uri + "' to space '" + to + "'. "
	space, err := accessible(c, to, complaint)
	if err != nil {
		return err
	}
	if _, err := usableDomain(c, r.DomainGUID, space); err != nil {
		return cf.Unprocessable("%sTarget space does not have access to route's domain", complaint)
	}
	if to == from {
		return nil
	}
	r.SpaceGUID, r.SharedSpaces = to, append(control.Drop(r.SharedSpaces, to), from)
	err = quota.Within(c, to, quota.Routes, func() error { return store.Routes.Update(c.Tx, r) })
	if err != nil {
		return err
	}
	return eventIn(c, audit.RouteTransferOwner, r, from, audit.Data{"target_space_guid": to})
}

// uriOf is the whole of what a route is reached by.
func uriOf(c *control.Session, r *cf.Route) (string, error) {
	d, err := store.Domains.Get(c.Tx, r.DomainGUID)
	if err != nil {
		return "", err
	}
	return desire.URI(r, d), nil
}
