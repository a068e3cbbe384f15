package routes

import (
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// New is a route to be made. In a TCP domain it gets any port that is free where none
// is given.
type New struct {
	Host          change.Field[string] `json:"host"`
	Path          change.Field[string] `json:"path"`
	Port          change.Field[int]    `json:"port"`
	Options       change.Field[any]    `json:"options"`
	Metadata      *change.Metadata     `json:"metadata"`
	Relationships struct {
		Space  change.ToOne `json:"space"`
		Domain change.ToOne `json:"domain"`
	} `json:"relationships"`
}

// Validate lists what is wrong with the route, in Cloud Controller's words.
func (n New) Validate() []string {
	return append(faults(n.Host.V, n.Path.V), control.Must(
		n.Port.V >= 0, "Port must be greater than or equal to 0",
		n.Port.V <= 65535, "Port must be less than or equal to 65535")...)
}

// Create makes a route in a space that the actor sees.
func Create(c *control.Session, n New) (*cf.Route, error) {
	options, err := ReadOptions(c, n.Options)
	if err != nil {
		return nil, err
	}
	space, d, err := target(c, n)
	if err != nil {
		return nil, err
	}
	r := &cf.Route{SpaceGUID: space.GUID, DomainGUID: d.GUID, Host: n.Host.V, Path: n.Path.V, Port: n.Port.V}
	if d.TCP() && !n.Port.Set {
		if r.Port, err = AnyPort(c, d); err != nil {
			return nil, err
		}
	}
	if r.Options, err = PatchOptions(nil, options); err != nil {
		return nil, err
	}
	if err := n.Metadata.Apply(&r.Metadata); err != nil {
		return nil, err
	}
	return r, Insert(c, r, d, c.Asked)
}

// target is the space and the domain of a new route.
func target(c *control.Session, n New) (*cf.Space, *cf.Domain, error) {
	space, err := c.TargetSpace(n.Relationships.Space.GUID())
	if err != nil {
		return nil, nil, err
	}
	d, err := usableDomain(c, n.Relationships.Domain.GUID(), space)
	return space, d, err
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
