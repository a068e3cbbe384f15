package api

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// The handlers below call a verb of the control plane with what a request says, and
// show what came of it: so the table of routes names the verbs.

// finder finds the row that a request is about, if the actor sees it and satisfies
// the rule.
type finder[T any] func(*call) (*T, error)

// at finds the row of {guid}, and checks the rule at its place.
func at[T any](t *store.Table[T], place func(*T) authz.Place) finder[T] {
	return func(c *call) (*T, error) { return control.Find(c.Session, t, c.guid(), place) }
}

// ofPlatform finds the row of {guid}, which is in no org.
func ofPlatform[T any](t *store.Table[T]) finder[T] {
	return at(t, func(*T) authz.Place { return authz.Place{} })
}

// byGUID finds the row of {guid} as a verb's package does.
func byGUID[T any](find func(*control.Session, string) (*T, error)) finder[T] {
	return func(c *call) (*T, error) { return find(c.Session, c.guid()) }
}

// byAdmin checks that the actor is an admin before anything else is looked at.
func byAdmin(h endpoint) endpoint {
	return func(c *call) (*response, error) {
		if err := c.PermitAdmin(); err != nil {
			return nil, err
		}
		return h(c)
	}
}

// create decodes a request and makes a row.
func create[T, R any](verb func(*control.Session, R) (*T, error), v view[T]) endpoint {
	return func(c *call) (*response, error) {
		var req R
		if err := decode(c, &req); err != nil {
			return nil, err
		}
		row, err := verb(c.Session, req)
		if err != nil {
			return nil, err
		}
		return created(v(c, row))
	}
}

// update decodes a request, finds a row and changes it.
func update[T, R any](find finder[T], verb func(*control.Session, *T, R) error, v view[T]) endpoint {
	return func(c *call) (*response, error) {
		var req R
		if err := decode(c, &req); err != nil {
			return nil, err
		}
		row, err := find(c)
		if err != nil {
			return nil, err
		}
		if err := verb(c.Session, row, req); err != nil {
			return nil, err
		}
		return ok(v(c, row))
	}
}

// act finds a row and changes it as a verb does that needs nothing of the request.
func act[T any](find finder[T], verb func(*control.Session, *T) error, v view[T]) endpoint {
	return func(c *call) (*response, error) {
		row, err := find(c)
		if err != nil {
			return nil, err
		}
		if err := verb(c.Session, row); err != nil {
			return nil, err
		}
		return ok(v(c, row))
	}
}

// findUpdate is update, but finds the row before it decodes the request: that
// decides which error a client gets first.
func findUpdate[T, R any](find finder[T], verb func(*control.Session, *T, R) error, v view[T]) endpoint {
	return func(c *call) (*response, error) {
		row, err := find(c)
		if err != nil {
			return nil, err
		}
		found := func(*call) (*T, error) { return row, nil }
		return update(found, verb, v)(c)
	}
}

// toGUIDs makes a verb of relationships of one that takes their GUIDs.
func toGUIDs[T any](verb func(*control.Session, *T, []string) error) func(*control.Session, *T, change.ToMany) error {
	return func(c *control.Session, row *T, req change.ToMany) error { return verb(c, row, req.GUIDs()) }
}

// toGUID is toGUIDs for a relationship to one thing.
func toGUID[T any](verb func(*control.Session, *T, string) error) func(*control.Session, *T, change.ToOne) error {
	return func(c *control.Session, row *T, req change.ToOne) error { return verb(c, row, req.GUID()) }
}

// label changes the labels and annotations of a row, which of gives.
func label[T any](t *store.Table[T], of func(*T) *cf.Metadata) func(*control.Session, *T, change.Labels) error {
	return func(c *control.Session, row *T, req change.Labels) error {
		if err := req.Metadata.Apply(of(row)); err != nil {
			return err
		}
		return t.Update(c.Tx, row)
	}
}

// remove finds a row and deletes it. The answer is a job that is complete; noun is
// that of its operation.
func remove[T any](find finder[T], verb func(*control.Session, *T) error, noun string) endpoint {
	return func(c *call) (*response, error) {
		row, err := find(c)
		if err != nil {
			return nil, err
		}
		if err := verb(c.Session, row); err != nil {
			return nil, err
		}
		return c.accepted(noun+".delete", noun+"s", c.guid())
	}
}

// drop is remove for what Cloud Controller deletes without a job.
func drop[T any](find finder[T], verb func(*control.Session, *T) error) endpoint {
	return detach(find, func(c *control.Session, row *T, _ string) error { return verb(c, row) }, "")
}

// detach finds a row and takes from it what a wildcard of the path names.
func detach[T any](find finder[T], verb func(*control.Session, *T, string) error, param string) endpoint {
	return func(c *call) (*response, error) {
		row, err := find(c)
		if err != nil {
			return nil, err
		}
		if err := verb(c.Session, row, c.param(param)); err != nil {
			return nil, err
		}
		return noContent()
	}
}

// showFound finds a row and shows it.
func showFound[T any](find finder[T], v view[T]) endpoint {
	return func(c *call) (*response, error) {
		row, err := find(c)
		if err != nil {
			return nil, err
		}
		return ok(v(c, row))
	}
}

// listOf checks the query, finds a row and lists those of a table whose filter has
// its {guid}.
func listOf[T, R any](find finder[T], t *store.Table[R], v view[R], filter string, also ...string) endpoint {
	return func(c *call) (*response, error) {
		if err := checkQuery(c); err != nil {
			return nil, err
		}
		return listFound(find, t, v, filter, also...)(c)
	}
}

// listFound is listOf, but finds the row first: that decides which error a client
// gets.
func listFound[T, R any](find finder[T], t *store.Table[R], v view[R], filter string, also ...string) endpoint {
	return func(c *call) (*response, error) {
		if _, err := find(c); err != nil {
			return nil, err
		}
		return listRows(c, t, v, matching(filter, c.guid()), also...)
	}
}

// guidsOf are the GUIDs of the rows of a table whose filter has a value and that the
// actor sees; none where they cannot be read.
func guidsOf[T any](c *call, t *store.Table[T], filter, value string, guid func(*T) string) []string {
	rows, _, err := t.List(c.Tx, store.Query{Where: map[string][]string{filter: {value}}, Visible: c.Scope})
	if err != nil {
		return nil
	}
	return control.GUIDs(rows, guid)
}
