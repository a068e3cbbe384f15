package audit

import (
	"context"
	"fmt"

	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

// Data is what an event tells besides its type, actor and target, as JSON.
type Data = map[string]any

// Hidden stands for secrets in Data: Cloud Controller's text.
const Hidden = "[PRIVATE DATA HIDDEN]"

// censored stands for a password in Data (CC: Presenters::Censorship::REDACTED_CREDENTIAL).
const censored = "***"

// Relation is a relationship to one thing, as requests write it.
func Relation(guid string) Data { return Data{"data": Data{"guid": guid}} }

// Target is what an event is about, and where that is.
type Target struct {
	Type, GUID, Name string
	Place            authz.Place
}

// Write records what an actor did to a target.
func Write(tx *store.Tx, actor cf.Actor, what Type, t Target, data Data) error {
	if !known[what] {
		return fmt.Errorf("the audit event %q is not in the list of types", what)
	}
	if data == nil {
		data = Data{}
	}
	if observe, ok := tx.Context().Value(observerKey{}).(func(string)); ok && t.Type == "app" {
		observe(t.GUID)
	}
	return store.Events.Insert(tx, &cf.Event{Type: string(what), Actor: actor,
		TargetType: t.Type, TargetGUID: t.GUID, TargetName: t.Name, SpaceGUID: t.Place.SpaceGUID, OrgGUID: t.Place.OrgGUID, Data: data})
}

// observerKey is the key of what Observed puts into a context.
type observerKey struct{}

// Observed returns a context of which f is called with the GUID of each app that a transaction writes an event of, before it is
// committed.
func Observed(ctx context.Context, f func(appGUID string)) context.Context {
	return context.WithValue(ctx, observerKey{}, f)
}

// App records what an actor did to an app.
func App(tx *store.Tx, actor cf.Actor, what Type, app *cf.App, data Data) error {
	space, err := store.Spaces.Get(tx, app.SpaceGUID)
	if err != nil {
		return err
	}
	return Write(tx, actor, what, Target{"app", app.GUID, app.Name, authz.Place{OrgGUID: space.OrgGUID, SpaceGUID: space.GUID}}, data)
}
