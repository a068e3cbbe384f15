package api

import (
	"slices"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// includer gives what a list or a row includes under one name of "include":
// the key it stands under, and the rows.
type includer[T any] func(c *call, rows []*T, what string) (key string, docs []doc, err error)

// listIncluding is listRows for a list that can include what its rows name.
func listIncluding[T any](c *call, t *store.Table[T], v view[T], inc includer[T], also ...string) (*response, error) {
	return listForeseeing(c, t, v, inc, func([]*T) error { return nil }, also...)
}

// listForeseeing is listIncluding for rows whose view recalls other rows.
func listForeseeing[T any](c *call, t *store.Table[T], v view[T], inc includer[T], foresee func([]*T) error, also ...string) (*response, error) {
	q, err := parseQuery(c, t, also...)
	if err != nil {
		return nil, err
	}
	q.Visible = c.Scope
	found, total, err := t.List(c.Tx, q.Query)
	if err != nil {
		return nil, err
	}
	if err := foresee(found); err != nil {
		return nil, err
	}
	d := page(c, q, found, total, v)
	return &response{body: d}, include(c, d, found, q.include, inc)
}

// showIncluding is show for a row that can include what it names. accepted is
// what its "include" takes, as parseQuery has it.
func showIncluding[T any](t *store.Table[T], v view[T], inc includer[T], accepted string) endpoint {
	return inTx(func(c *call) (*response, error) {
		q, err := parseQuery(c, noRows{}, accepted)
		if err != nil {
			return nil, err
		}
		row, err := t.Visible(c.Tx, c.guid(), c.Scope)
		if err != nil {
			return nil, err
		}
		d := v(c, row)
		return &response{body: d}, include(c, d, []*T{row}, q.include, inc)
	})
}

// partsOf are the parts of an "include" that gives several kinds of things.
// CC: app/decorators/include_space_decorator.rb.
var partsOf = map[string][]string{"source": {"source.app", "source.space", "source.organization"}, "space.organization": {"space", "space.organization"}}

// include adds "included" to d when any was asked for.
func include[T any](c *call, d doc, rows []*T, names []string, inc includer[T]) error {
	if len(names) == 0 {
		return nil
	}
	included := doc{}
	for _, name := range names {
		parts := partsOf[name]
		if parts == nil {
			parts = []string{name}
		}
		for _, what := range parts {
			if what == "space" && what != name && slices.Contains(names, what) {
				continue // it is there already, or comes
			}
			key, docs, err := inc(c, rows, what)
			if err != nil {
				return err
			}
			included[key] = docs
		}
	}
	d["included"] = included
	return nil
}

// noRows is what parseQuery knows of a request for one row: it takes no filter.
type noRows struct{}

func (noRows) Filters() []string { return nil }
func (noRows) Orders() []string  { return nil }
func (noRows) Labelled() bool    { return false }

// including gives the rows of a table with the GUIDs, each once.
func including[T any](c *call, t *store.Table[T], v view[T], guids []string) ([]doc, error) {
	slices.Sort(guids)
	rows, err := t.By(c.Tx, "guids", slices.Compact(guids)...)
	return views(c, rows, v), err
}

// includingOrgsOf gives the orgs of spaces.
func includingOrgsOf(c *call, spaceGUIDs []string) ([]doc, error) {
	spaces, err := store.Spaces.By(c.Tx, "guids", spaceGUIDs...)
	if err != nil {
		return nil, err
	}
	return including(c, store.Orgs, viewOrg, control.GUIDs(spaces, func(s *cf.Space) string { return s.OrgGUID }))
}
