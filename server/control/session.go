package control

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"cupola/server/authz"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// Session is one actor in one transaction.
type Session struct {
	Tx       *store.Tx
	Actor    *authz.Actor
	Scopes   []string     // of the actor's token
	Scope    *store.Scope // what the actor sees; nil means everything
	Rule     authz.Rule   // of the verb: who may do it
	Writes   bool         // it may change something: in a suspended org, admins only
	Checked  bool         // the rule was checked
	Silent   bool         // no audit event is written
	Platform *Platform
	Warnings []string   // for the client
	Asked    audit.Data // the request, as audit events show it; nil for none
	Manifest bool       // a manifest triggers what is done
	After    []func()   // run once the transaction is committed
	Awaited  []Awaited

	kept     map[reflect.Type]any // by Kept
	keptOf   *store.Tx
	heldFrom int64 // statements of Tx when a removal in parts began
}

// Awaited is a binding that a broker must make before the job is
// done.
type Awaited struct {
	Binding, App, Service string // a GUID, and two names
}

// InSession runs f in a transaction that may write, as the part of the daemon that f makes the
// session's actor.
func InSession(ctx context.Context, s *store.Store, p *Platform, f func(*Session) error) error {
	c := &Session{}
	err := s.Write(ctx, func(tx *store.Tx) error {
		*c = Session{Tx: tx, Writes: true, Platform: p}
		return f(c)
	})
	if err != nil {
		return err
	}
	for _, then := range c.After {
		then()
	}
	return nil
}

// Act makes a user or client the session's actor, with its current roles.
func (c *Session) Act(who cf.Actor, scopes []string) (err error) {
	if c.Actor, err = access.Actor(c.Tx, who, scopes); err != nil {
		return err
	}
	c.Scopes = scopes
	if c.Writes && !c.Actor.MayWrite() || !c.Writes && !c.Actor.MayRead() {
		return access.NotAuthorized()
	}
	c.Scope, err = access.Scope(c.Tx, c.Actor)
	return err
}

// Who is the actor, for rows that remember who made them.
func (c *Session) Who() cf.Actor { return access.Who(c.Actor) }

// Audit records what the actor did.
func (c *Session) Audit(what audit.Type, t audit.Target, data audit.Data) error {
	if c.Silent {
		return nil
	}
	return audit.Write(c.Tx, c.Who(), what, t, data)
}

// AuditApp records what the actor did to an app.
func (c *Session) AuditApp(what audit.Type, app *cf.App, data audit.Data) error {
	return audit.App(c.Tx, c.Who(), what, app, data)
}

// Audited is the body of a request as audit events show it.
func Audited(body []byte) audit.Data {
	var d audit.Data
	if json.Unmarshal(body, &d) != nil {
		return audit.Data{}
	}
	return audit.Request(d)
}

// Request is data of an audit event with the request that asked for what is done;
// more are pairs of a name and a value besides it.
func (c *Session) Request(asked audit.Data, more ...any) audit.Data {
	if asked == nil {
		asked = audit.Data{}
	}
	data := audit.Data{"request": asked}
	for i := 0; i < len(more); i += 2 {
		data[more[i].(string)] = more[i+1]
	}
	return c.Triggered(data)
}

// Triggered marks data of an audit event if a manifest triggers what is done (CC:
// repositories/mixins/app_manifest_event_mixins.rb).
func (c *Session) Triggered(data audit.Data) audit.Data {
	if c.Manifest {
		data["manifest_triggered"] = true
	}
	return data
}

// Warn adds a warning for the client, which the CLI prints.
func (c *Session) Warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// Then runs f after the transaction is committed.
func (c *Session) Then(f func()) { c.After = append(c.After, f) }

// Note writes to the app's log what was done, after the commit.
func (c *Session) Note(app *cf.App, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.Then(func() { c.Platform.Note(app.GUID, text) })
}

// Kept is what a package keeps for as long as the session's transaction lasts:
// one T, zero at first.
func Kept[T any](c *Session) *T {
	if c.kept == nil || c.keptOf != c.Tx {
		c.kept, c.keptOf = map[reflect.Type]any{}, c.Tx
	}
	of := reflect.TypeFor[T]()
	if c.kept[of] == nil {
		c.kept[of] = new(T)
	}
	return c.kept[of].(*T)
}
