package api

import (
	"cupola/store"
	"cupola/store/cf"
)

// findApp finds the app of {guid}.
func findApp(c *call) (*cf.App, error) { return c.App(c.guid()) }

// ofApp gives the row of {guid} that belongs to an app, if the actor sees it
// and satisfies the rule at the app's space.
func ofApp[T any](c *call, t *store.Table[T], app func(*T) string) (*T, *cf.App, error) {
	row, err := t.Get(c.Tx, c.guid())
	if err != nil {
		return nil, nil, err
	}
	a, err := c.App(app(row))
	if store.IsNotFound(err) {
		err = t.NotFound()
	}
	return row, a, err
}

// anApps finds the row of {guid} that belongs to an app.
func anApps[T any](t *store.Table[T], app func(*T) string) finder[T] {
	return func(c *call) (*T, error) {
		row, _, err := ofApp(c, t, app)
		return row, err
	}
}
