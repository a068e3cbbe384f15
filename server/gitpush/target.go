package gitpush

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// target is the app that a push is about, which may not be there yet.
type target struct {
	org, space *place
	name       string // of the app
	app        string // its GUID; "" for none
	user       string // GUID of who pushes
	client     *client
}

type place struct{ Name, GUID string }

func refusef(status int, format string, args ...any) *refusal {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// target finds an app, for those who may push it: space developers, as POST /v3/apps
// and apply_manifest want.
func (f *Face) target(ctx context.Context, c *client, org, space, app string) (*target, error) {
	who, err := f.Verify(ctx, c.token)
	if err != nil {
		return nil, unauthorized()
	}
	name, _ := strings.CutSuffix(app, ".git")
	t := &target{org: &place{Name: org}, space: &place{Name: space}, name: name, user: who.Actor().GUID, client: c}
	err = f.Store.Read(ctx, func(tx *store.Tx) error {
		s := &control.Session{Tx: tx, Rule: authz.SpaceDeveloper, Writes: true}
		if err := s.Act(who.Actor(), who.Scopes); err != nil {
			return err
		}
		return t.find(s)
	})
	return t, shownTo(err)
}

// find looks the names of a path up, as far as the actor sees what they name.
func (t *target) find(s *control.Session) error {
	var err error
	if t.org.GUID, err = named(s, store.Orgs, map[string][]string{"names": {t.org.Name}}, func(o *cf.Org) string { return o.GUID }); err != nil {
		return err
	}
	if t.org.GUID == "" {
		return refusef(http.StatusNotFound, "Organization '%s' not found.", t.org.Name)
	}
	where := map[string][]string{"names": {t.space.Name}, "organization_guids": {t.org.GUID}}
	if t.space.GUID, err = named(s, store.Spaces, where, func(o *cf.Space) string { return o.GUID }); err != nil {
		return err
	}
	if t.space.GUID == "" {
		return refusef(http.StatusNotFound, "Space '%s' not found.", t.space.Name)
	}
	if _, err := s.Space(t.space.GUID); err != nil { // with the rule
		return err
	}
	t.app, err = named(s, store.Apps, map[string][]string{"names": {t.name}, "space_guids": {t.space.GUID}}, func(a *cf.App) string { return a.GUID })
	return err
}

// named is the GUID of the one row that filters find and the actor sees; "" for none.
func named[T any](s *control.Session, table *store.Table[T], where map[string][]string, guid func(*T) string) (string, error) {
	rows, _, err := table.List(s.Tx, store.Query{Where: where, Visible: s.Scope})
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return guid(rows[0]), nil
}

// shownTo turns an error of a verb into one that git shows.
func shownTo(err error) error {
	e, ok := errors.AsType[*cf.Error](err)
	switch {
	case !ok:
		return err
	case e.Kind == cf.NotAuthorized || e.Kind == cf.OrgSuspended:
		return &refusal{http.StatusForbidden, e.Detail}
	case e.Kind == cf.ResourceNotFound:
		return &refusal{http.StatusNotFound, e.Detail}
	}
	return &refusal{http.StatusUnprocessableEntity, e.Detail}
}
