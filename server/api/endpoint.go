package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	guard "cupola/runtime/fault"
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// route is a row of the table: a method and path, who may use it, and what it
// does. For a GET the rule says who may see the resource at all; for others
// it does not exist.
type route struct {
	pattern string
	rule    authz.Rule
	serve   endpoint
}

// endpoint serves one request that was authenticated.
type endpoint func(*call) (*response, error)

// response is what a handler answers. Its status 0 means 200.
type response struct {
	status int
	body   any // marshalled as JSON unless raw is set
	header http.Header
	raw    func(http.ResponseWriter, *http.Request) // writes header and body itself
}

// handle wraps an endpoint with what is common to all: request id,
// authentication, errors.
func (s *Server) handle(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := requestID(r)
		w.Header().Set("X-Vcap-Request-Id", id)
		c := &call{s: s, Request: r, w: w, rule: rt.rule, requestID: id, Session: &control.Session{}}
		defer c.putSlot()
		var res *response
		err := guard.Guard("api", func() (err error) {
			res, err = c.run(rt)
			return err
		})
		if err != nil {
			res = s.failure(r, err)
		}
		c.write(res)
	}
}

// requestID keeps a client's request id, as Cloud Controller does, and adds
// its own: "<client's>::<uuid>".
func requestID(r *http.Request) string {
	own := control.NewGUID()
	if given := r.Header.Get("X-Vcap-Request-Id"); given != "" && len(given) <= 200 && !strings.ContainsAny(given, "\r\n") {
		return given + "::" + own
	}
	return own
}

func (c *call) run(rt route) (*response, error) {
	if err := c.authenticate(); err != nil {
		return nil, err
	}
	if err := c.readQuery(); err != nil {
		return nil, err
	}
	if err := c.takeSlot(); err != nil {
		return nil, err
	}
	return rt.serve(c)
}

// readQuery refuses a query that cannot be read as a whole: url.Values leaves out the rest, and
// a list would lack its filters. A semicolon is a character like others, as in Rails.
func (c *call) readQuery() error {
	if c.Request.URL.RawQuery == "" {
		return nil
	}
	u := *c.Request.URL
	u.RawQuery = strings.ReplaceAll(u.RawQuery, ";", "%3B")
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil || !utf8.ValidString(fmt.Sprint(values)) {
		return cf.Errorf(cf.InvalidRequest, "The request is invalid")
	}
	r := *c.Request
	r.URL = &u
	c.Request = &r
	return nil
}

// authenticate reads the bearer token. A route that is public takes none.
func (c *call) authenticate() error {
	if c.rule&authz.Public != 0 {
		return nil
	}
	scheme, token, _ := strings.Cut(c.Request.Header.Get("Authorization"), " ")
	if token == "" && c.rule&authz.Guest != 0 {
		c.guest = true
		return nil
	}
	if token == "" {
		return cf.Errorf(cf.NotAuthenticated, "Authentication error")
	}
	id, err := c.s.Authenticate(c.Context(), token)
	if err != nil && (store.Explain(err) != nil || c.Context().Err() != nil) {
		return err // the token may be good: a 401 would log the user out
	}
	if err != nil || !strings.EqualFold(scheme, "bearer") {
		return cf.Errorf(cf.InvalidAuthToken, "Invalid Auth Token")
	}
	c.identity = id
	return nil
}

// inTx makes an endpoint of a handler: it runs in one transaction, which reads
// when the method does. A handler that changes things must have checked its
// rule with permit. One that ends with control.ErrMore has done a part: it is committed,
// and the handler runs again for the rest, so that others write between the two.
func inTx(h func(*call) (*response, error)) endpoint {
	return func(c *call) (res *response, err error) {
		if err := c.receive(); err != nil {
			return nil, err
		}
		for more := true; more; {
			err = c.tx(c.writes(), func() error {
				res, err = h(c)
				if more = errors.Is(err, control.ErrMore); err != nil && !more {
					return err
				}
				if c.writes() && !c.Checked && c.rule&authz.Public == 0 {
					return fmt.Errorf("%s: the handler never checked the access rule", c.Request.Pattern)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			for _, f := range c.After {
				f()
			}
		}
		return res, nil
	}
}

// receive reads the body before the transaction begins: a transaction blocks all other
// writes, and a client may send slowly.
func (c *call) receive() error {
	if c.received || !c.writes() {
		return nil
	}
	c.received = true
	body, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody+1))
	if err != nil {
		return brokenBody(err)
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// tx runs f in a transaction in which c may be used.
func (c *call) tx(write bool, f func() error) error {
	leave, err := c.s.enter(c.Context(), c.asker(), write)
	if err != nil {
		return err
	}
	defer leave()
	run := c.s.Store.Read
	if write {
		run = c.s.Store.Write
	}
	if c.reads != nil {
		run = c.reads.Noting(run)
	}
	return run(store.As(c.Context(), c.identity.Actor().GUID), func(tx *store.Tx) error {
		*c.Session = control.Session{Tx: tx, Rule: c.rule, Writes: c.writes(), Platform: &c.s.Platform}
		c.recalled = nil
		defer func() { c.Tx = nil }()
		if c.rule&authz.Public == 0 {
			if err := c.loadActor(); err != nil {
				return err
			}
		}
		return f()
	})
}

func (c *call) loadActor() error {
	if c.guest {
		return browse(c)
	}
	return c.Act(c.identity.Actor(), c.identity.Scopes)
}
