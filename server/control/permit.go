package control

import (
	"strings"

	"cupola/server/authz"
	"cupola/server/control/access"
	"cupola/store"
	"cupola/store/cf"
)

// Permit checks the rule at a place, and that its org is not suspended. An actor who
// cannot see the place should have got a 404 before.
func (c *Session) Permit(p authz.Place) error {
	c.Checked = true
	return access.Check(c.Tx, c.Actor, c.Rule, p, c.Writes)
}

// PermitAdmin is Permit for resources outside of orgs.
func (c *Session) PermitAdmin() error { return c.Permit(authz.Place{}) }

// Find is the row with a GUID, if the actor sees it and satisfies the rule at its
// place.
func Find[T any](c *Session, t *store.Table[T], guid string, place func(*T) authz.Place) (*T, error) {
	row, err := t.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, err
	}
	return row, c.Permit(place(row))
}

// InSpace is Permit at a space.
func (c *Session) InSpace(guid string) (*cf.Space, error) {
	space, err := store.Spaces.Get(c.Tx, guid)
	if err != nil {
		return nil, err
	}
	return space, c.Permit(access.At(space))
}

// PlaceOf is the place of resources of an app.
func (c *Session) PlaceOf(app *cf.App) (authz.Place, error) {
	space, err := store.Spaces.Get(c.Tx, app.SpaceGUID)
	if err != nil {
		return authz.Place{}, err
	}
	return access.At(space), nil
}

// TargetSpace is the space that a request names, if the actor sees it and
// satisfies the rule there.
func (c *Session) TargetSpace(guid string) (*cf.Space, error) {
	if _, err := store.Spaces.Visible(c.Tx, guid, c.Scope); err != nil {
		return nil, Unprocessable(err, "Invalid space. Ensure that the space exists and you have access to it.")
	}
	return c.InSpace(guid)
}

// App is an app, if the actor sees it and satisfies the rule at its space.
func (c *Session) App(guid string) (*cf.App, error) {
	app, err := store.Apps.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, err
	}
	_, err = c.InSpace(app.SpaceGUID)
	return app, err
}

// Space is a space, if the actor sees it and satisfies the rule there.
func (c *Session) Space(guid string) (*cf.Space, error) {
	return Find(c, store.Spaces, guid, access.At)
}

// Org is an org, if the actor sees it and satisfies the rule there.
func (c *Session) Org(guid string) (*cf.Org, error) {
	return Find(c, store.Orgs, guid, access.OfOrg)
}

// Forbidding finds a row. One that the actor does not see comes with the error that the
// actor is not authorized (CC: ModelController.find_guid_and_validate_access).
func Forbidding[T any](c *Session, t *store.Table[T], guid string) (*T, error) {
	row, err := t.Visible(c.Tx, guid, c.Scope)
	if !store.IsNotFound(err) {
		return row, err
	}
	if row, err = t.Get(c.Tx, guid); err == nil {
		err = access.NotAuthorized()
	}
	return row, err
}

// MayDevelop reports whether the actor is a developer of a space.
func (c *Session) MayDevelop(space *cf.Space) bool {
	return c.Actor.May(authz.SpaceDeveloper, access.At(space))
}

// MaySeeSecrets reports whether the actor may see environment variables and credentials
// in a space.
func (c *Session) MaySeeSecrets(space *cf.Space) bool {
	return c.Actor.May(authz.SecretReader, access.At(space))
}

// ShareTargets returns the spaces to share a resource with. The actor must be able to write
// in all of them. end is the end of the error's sentence.
func (c *Session) ShareTargets(thing string, guids []string, end string) (spaces []*cf.Space, err error) {
	var unseen, unwritable []string
	for _, guid := range guids {
		s, err := store.Spaces.Visible(c.Tx, guid, c.Scope)
		if store.IsNotFound(err) {
			unseen = append(unseen, "'"+guid+"'")
			continue
		}
		if err != nil {
			return nil, err
		}
		org, err := store.Orgs.Get(c.Tx, s.OrgGUID)
		if err != nil {
			return nil, err
		}
		if !c.MayDevelop(s) || org.Suspended && !c.Actor.Admin {
			unwritable = append(unwritable, "'"+guid+"'")
		}
		spaces = append(spaces, s)
	}
	messages := Must(unseen == nil, "Unable to share "+thing+" with spaces ["+strings.Join(unseen, ", ")+"]. Ensure the spaces exist and that you have access to them.",
		unwritable == nil, "Unable to share "+thing+" with spaces ["+strings.Join(unwritable, ", ")+"]. Write permission is required in order to share a "+end)
	if messages != nil {
		return nil, cf.Unprocessable("%s", strings.Join(messages, "\n"))
	}
	return spaces, nil
}
