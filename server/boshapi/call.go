package boshapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"cupola/runtime/fairqueue"
	"cupola/server/authz"
	"cupola/server/bosh/director"
	"cupola/server/bulkhead"
	"cupola/server/control/access"
	"cupola/store"
	"cupola/store/cf"
)

// call is a request on its way through a handler.
type call struct {
	*Server
	Request *http.Request
	rule    rule

	identity  cf.Identity
	slot      string // of Slots; "" for none
	uploading *fairqueue.Slot

	tx    *store.Tx // nil outside of transactions
	admin bool      // the actor of the transaction is one
}

// doc is a JSON object.
type doc = map[string]any

// maxBody bounds a request, but for a release's tarball: a manifest is smaller.
const maxBody = 4 << 20

// run authenticates the request, takes a slot and serves it.
func (c *call) run(w http.ResponseWriter, serve handler) (*answer, error) {
	if err := c.authenticate(); err != nil {
		return nil, err
	}
	if who := c.asker(); c.Slots != nil {
		if !c.Slots.Take(who) {
			return nil, &refusal{http.StatusServiceUnavailable, 0, "Too many requests of this user are under way: try again when some of them have been answered"}
		}
		c.slot = who
	}
	return serve(c.limited(w))
}

// limited bounds the body.
func (c *call) limited(w http.ResponseWriter) *call {
	if c.Request.Pattern != uploadRoute {
		c.Request.Body = http.MaxBytesReader(w, c.Request.Body, maxBody)
	}
	return c
}

// leave gives back what the request took.
func (c *call) leave() {
	if c.slot != "" {
		c.Slots.Put(c.slot)
	}
	if c.uploading != nil {
		c.uploading.Release()
	}
}

// asker is the user of the request, or else the client or address.
func (c *call) asker() string {
	return cmp.Or(c.identity.Actor().GUID, bulkhead.AddressOf(c.Request.RemoteAddr).String())
}

// user is the name that tasks and events record.
func (c *call) user() string { return c.identity.Actor().Name }

// authenticate finds whose the token is. The route of anyone needs none.
func (c *call) authenticate() error {
	scheme, token, _ := strings.Cut(c.Request.Header.Get("Authorization"), " ")
	if token == "" {
		if c.rule == anyone {
			return nil
		}
		return errUnauthenticated(c.Request)
	}
	id, err := c.Verify(c.Request.Context(), token)
	if err != nil && (store.Explain(err) != nil || c.Request.Context().Err() != nil) {
		return err // a 401 would log the user out
	}
	if err != nil || !strings.EqualFold(scheme, "bearer") {
		if c.rule == anyone {
			return nil
		}
		return errUnauthenticated(c.Request)
	}
	c.identity = id
	return nil
}

// authorize checks the rule with the roles of now.
func (c *call) authorize() error {
	actor, err := access.Actor(c.tx, c.identity.Actor(), c.identity.Scopes)
	if err != nil || c.rule == anyone {
		return err
	}
	c.admin = access.DirectorAdmin(actor, c.identity.Scopes)
	reads := actor.May(authz.AdminReadOnly, authz.Place{}) || slices.Contains(c.identity.Scopes, "bosh.read")
	switch {
	case c.admin, c.rule == reader && reads:
		return nil
	case c.rule == reader:
		return &refusal{http.StatusUnauthorized, 600000, "Require one of the scopes: bosh.admin, bosh.read, cloud_controller.admin, cloud_controller.admin_read_only"}
	}
	return &refusal{http.StatusUnauthorized, 600000, "Require one of the scopes: bosh.admin, cloud_controller.admin"}
}

// inTx serves in a transaction; for a GET one that only reads.
func inTx(h handler) handler { return serveIn(h, false) }

// recording serves a GET that records a task.
func recording(h handler) handler { return serveIn(h, true) }

func serveIn(h handler, write bool) handler {
	return func(c *call) (a *answer, err error) {
		if err := c.receive(); err != nil {
			return nil, err
		}
		err = c.in(write || c.Request.Method != http.MethodGet, func() error {
			a, err = h(c)
			return err
		})
		return a, err
	}
}

// in runs f in a transaction.
func (c *call) in(write bool, f func() error) error {
	run := c.Store.Read
	if write {
		run = c.Store.Write
	}
	return run(store.As(c.Request.Context(), c.identity.Actor().GUID), func(tx *store.Tx) error {
		c.tx = tx
		defer func() { c.tx = nil }()
		if err := c.authorize(); err != nil {
			return err
		}
		return f()
	})
}

// receive reads the body before a transaction begins: a client may send slowly.
func (c *call) receive() error {
	body, err := io.ReadAll(c.Request.Body)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return &refusal{http.StatusRequestEntityTooLarge, 440001, fmt.Sprintf("The request is larger than %d bytes", maxBody)}
	}
	if err != nil {
		return &refusal{http.StatusBadRequest, 0, "The request could not be read"}
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// text is the body, which was received.
func (c *call) text() (string, error) {
	body, err := io.ReadAll(c.Request.Body)
	return string(body), err
}

// decode reads the body as JSON. An empty one leaves v as it is.
func (c *call) decode(v any) error {
	body, err := c.text()
	if err != nil || strings.TrimSpace(body) == "" {
		return err
	}
	if err := json.Unmarshal([]byte(body), v); err != nil {
		return &refusal{http.StatusBadRequest, 40000, "The request is not JSON of the expected form: " + err.Error()}
	}
	return nil
}

// flag reports whether a parameter of the query is "true".
func (c *call) flag(name string) bool { return c.query(name) == "true" }

func (c *call) query(name string) string { return c.Request.URL.Query().Get(name) }

func (c *call) param(name string) string { return c.Request.PathValue(name) }

// deployment is the one of {name}.
func (c *call) deployment() (*cf.BOSHDeployment, error) { return c.deploymentNamed(c.param("name")) }

func (c *call) deploymentNamed(name string) (*cf.BOSHDeployment, error) {
	d, err := store.BOSHDeployments.First(c.tx, store.Query{Where: map[string][]string{"names": {name}}})
	if store.IsNotFound(err) {
		return nil, &refusal{http.StatusNotFound, 70000, "Deployment '" + name + "' doesn't exist"}
	}
	return d, err
}

// listed is the deployment of the path, as listDeployments has it: also one whose first deploy has written no row yet.
func (c *call) listed() (*cf.BOSHDeployment, error) {
	all, err := director.All(c.tx)
	if err != nil {
		return nil, err
	}
	if n := slices.IndexFunc(all, func(d *cf.BOSHDeployment) bool { return d.Name == c.param("name") }); n >= 0 {
		return all[n], nil
	}
	return c.deployment()
}

// ended records what was done at once as a task, to which the client is redirected.
func (c *call) ended(e director.Ended) (*answer, error) {
	e.User = c.user()
	t, err := director.Record(c.tx, e)
	if err != nil {
		return nil, err
	}
	return toTask(t), nil
}
