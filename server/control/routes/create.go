package routes

import (
	"strings"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// New is a route to be made.
type New struct {
	SpaceGUID, DomainGUID string
	Host, Path            string
	Port                  change.Field[int] // in a TCP domain; any that is free where none is given
	Options               map[string]any
	Metadata              *change.Metadata
}

// Create makes a route in a space that the actor sees.
func Create(c *control.Session, n New) (*cf.Route, error) {
	space, err := c.TargetSpace(n.SpaceGUID)
	if err != nil {
		return nil, err
	}
	d, err := UsableDomain(c, n.DomainGUID, space)
	if err != nil {
		return nil, err
	}
	r := &cf.Route{SpaceGUID: space.GUID, DomainGUID: d.GUID, Host: strings.ToLower(n.Host), Path: n.Path, Port: n.Port.V}
	if d.TCP() && !n.Port.Set {
		if r.Port, err = AnyPort(c); err != nil {
			return nil, err
		}
	}
	if r.Options, err = PatchOptions(nil, n.Options); err != nil {
		return nil, err
	}
	if err := n.Metadata.Apply(&r.Metadata); err != nil {
		return nil, err
	}
	return r, Insert(c, r, d)
}

// Find is a route, if the actor sees it and satisfies the rule in its space.
func Find(c *control.Session, guid string) (*cf.Route, error) {
	r, err := store.Routes.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, err
	}
	_, err = c.InSpace(r.SpaceGUID)
	return r, err
}

// Update changes the options of a route, where they are not nil, and its
// metadata.
func Update(c *control.Session, r *cf.Route, options map[string]any, m *change.Metadata) (err error) {
	if options != nil {
		if r.Options, err = PatchOptions(r.Options, options); err != nil {
			return err
		}
	}
	if err := m.Apply(&r.Metadata); err != nil {
		return err
	}
	return store.Routes.Update(c.Tx, r)
}
