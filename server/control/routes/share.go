package routes

import (
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/store"
	"cupola/store/cf"
)

// Shareable refuses spaces in which the actor may not write.
func Shareable(c *control.Session, uri string, guids []string) error {
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

// Accessible is a space in which the actor can run apps; complaint begins what
// is said of others.
func Accessible(c *control.Session, guid, complaint string) (*cf.Space, error) {
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
		r.SharedSpaces = control.Without(r.SharedSpaces, func(g string) bool { return g == space })
		return store.Routes.Update(c.Tx, r)
	})
}
