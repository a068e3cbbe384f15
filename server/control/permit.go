package control

import (
	"cupola/server/authz"
	"cupola/server/control/access"
	"cupola/store"
	"cupola/store/cf"
)

// Permit checks the rule at a place, and that its org is not suspended. One who
// may not even see the place should have got a 404 before.
func (c *Session) Permit(p authz.Place) error {
	c.Checked = true
	return access.Check(c.Tx, c.Actor, c.Rule, p, c.Writes)
}

// PermitAdmin is Permit for what is in no org.
func (c *Session) PermitAdmin() error { return c.Permit(authz.Place{}) }

// InSpace is Permit at a space.
func (c *Session) InSpace(guid string) (*cf.Space, error) {
	space, err := store.Spaces.Get(c.Tx, guid)
	if err != nil {
		return nil, err
	}
	return space, c.Permit(access.At(space))
}

// PlaceOf is the place of what belongs to an app.
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
		c.Checked = true
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

// MayDevelop reports whether the actor is a developer of a space.
func (c *Session) MayDevelop(space *cf.Space) bool {
	return c.Actor.May(authz.SpaceDeveloper, access.At(space))
}
