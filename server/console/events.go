package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/server/control/access"
	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/cf"
)

// What keeps a stream of events alive, and what ends it.
const (
	heartbeat = 15 * time.Second
	writeTime = 10 * time.Second // for the client to take a message
	retryTime = 500 * time.Millisecond
)

// hello is the first message of each connection.
type hello struct {
	Version string    `json:"version"`
	Domain  string    `json:"domain"`
	User    helloUser `json:"user"`
	Admin   bool      `json:"admin"`
	ReadsAs bool      `json:"admin_read_only"` // sees what an admin sees
	Reads   bool      `json:"reads_all"`       // sees everything but secrets
	Resumed bool      `json:"resumed"`         // false: what the client shows may be old
	SSH     bool      `json:"ssh"`
}

type helloUser struct {
	GUID string `json:"guid"`
	Name string `json:"name"`
}

// id is what a client resumes by: how many messages it had, and its place in the
// feed.
type id struct {
	messages uint64
	position
}

func (i id) String() string { return fmt.Sprintf("%d-%s-%d", i.messages, i.epoch, i.last) }

// parseID reads what String wrote; anything else is the zero id.
func parseID(text string) (i id) {
	parts := strings.Split(text, "-")
	if len(parts) != 3 || len(text) > 64 {
		return id{}
	}
	messages, err1 := strconv.ParseUint(parts[0], 10, 53) // JavaScript's integers
	last, err2 := strconv.ParseUint(parts[2], 10, 64)
	if err1 != nil || err2 != nil {
		return id{}
	}
	return id{messages, position{parts[1], last}}
}

// identify returns who a session is of, and what the user may see; ok is false when
// the session has ended.
func (c *Console) identify(tx *store.Tx, s session) (who cf.Identity, v viewer, ok bool, err error) {
	if _, ok, err = store.ConsoleSessions.Get(tx, s.key); err != nil || !ok {
		return who, v, false, err
	}
	if who, ok, err = uaa.IdentityOf(tx, s.login); err != nil || !ok {
		return who, v, false, err
	}
	actor, err := access.Actor(tx, who.Actor(), who.Scopes)
	if err != nil {
		return who, v, false, err
	}
	scope, err := access.Scope(tx, actor)
	return who, newViewer(actor.GUID, scope), err == nil, err
}

// events is the console's one live stream.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	s, ok, err := c.session(r)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	if !ok {
		refuseStranger(w)
		return
	}
	one, ctx, ok := c.live.begin(r.Context(), s.key, s.login.UserGUID)
	if !ok {
		refuseMany(w)
		return
	}
	defer c.live.finish(s.key, one)
	defer c.feed.hold()()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	e := &eventStream{c: c, s: s, w: w, control: http.NewResponseController(w), id: parseID(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")))}
	defer e.release()
	e.run(ctx)
}

// eventStream writes messages to one client.
type eventStream struct {
	c       *Console
	s       session
	w       http.ResponseWriter
	control *http.ResponseController
	id      id
	viewer  viewer
}

// run writes messages until ctx, the session or the daemon ends.
func (e *eventStream) run(ctx context.Context) {
	from := e.c.feed.now()
	if _, _, ok := e.c.feed.since(e.id.position); ok {
		from = e.id.position
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	err := e.greet(ctx, from)
	for err == nil {
		batches, news, ok := e.c.feed.since(from)
		if !ok { // the client was too slow
			from = e.c.feed.now()
			err = e.greet(ctx, from)
			continue
		}
		for _, b := range batches {
			from.last = b.number
			if err = e.changes(ctx, b, from); err != nil {
				return
			}
		}
		select {
		case <-news:
		case <-beat.C:
			err = e.write(": beat\n\n")
		case <-e.c.Stop.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// errSessionEnded ends a stream.
var errSessionEnded = errors.New("the session has ended")

// look reads again what the user may see, and ends the stream with its session.
func (e *eventStream) look(ctx context.Context) error {
	return e.c.Store.Read(ctx, func(tx *store.Tx) error {
		_, v, ok, err := e.c.identify(tx, e.s)
		if err == nil && !ok {
			_ = e.message(map[string]string{"end": "logout"}, e.id.position) // it ends either way
			return errSessionEnded
		}
		e.viewer = v
		return err
	})
}

// greet says who the user is, and whether the client's state is that of a position.
func (e *eventStream) greet(ctx context.Context, from position) error {
	var who cf.Identity
	err := e.c.Store.Read(ctx, func(tx *store.Tx) error {
		var ok bool
		var err error
		who, e.viewer, ok, err = e.c.identify(tx, e.s)
		if err == nil && !ok {
			return errSessionEnded
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := e.write("retry: %d\n\n", retryTime.Milliseconds()); err != nil {
		return err
	}
	return e.message(map[string]hello{"hello": {Version: e.c.Version, Domain: e.c.Domain, User: helloUser{who.UserGUID, who.Username}, Admin: slices.Contains(who.Scopes, "cloud_controller.admin"),
		ReadsAs: slices.Contains(who.Scopes, "cloud_controller.admin_read_only"),
		Reads:   e.viewer.all, Resumed: from == e.id.position, SSH: e.c.SSH != nil}}, from)
}

// changes describes what of a batch the user may see.
func (e *eventStream) changes(ctx context.Context, b batch, at position) error {
	if b.authority {
		if err := e.look(ctx); err != nil {
			return err
		}
	}
	var seen []change
	for _, c := range b.changes {
		if shown, ok := e.viewer.show(c); ok {
			seen = append(seen, shown)
		}
	}
	if len(seen) == 0 {
		return nil
	}
	return e.message(map[string][]change{"changes": distinct(seen)}, at)
}

// message sends a message with the next number.
func (e *eventStream) message(v any, at position) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	e.id = id{e.id.messages + 1, at}
	return e.write("id: %s\ndata: %s\n\n", e.id, text)
}

func (e *eventStream) write(format string, args ...any) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTime)) // tests' recorders have none
	if _, err := fmt.Fprintf(e.w, format, args...); err != nil {
		return err
	}
	return e.control.Flush()
}

// release lets the connection be used again.
func (e *eventStream) release() { _ = e.control.SetWriteDeadline(time.Time{}) }
