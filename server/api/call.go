package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"cupola/runtime/fairqueue"
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// call is one request on its way through a handler.
type call struct {
	s         *Server
	Request   *http.Request
	w         http.ResponseWriter
	rule      authz.Rule
	identity  cf.Identity
	requestID string
	received  bool // the body was read
	slotOf    string
	slotted   bool            // it has a slot of slotOf
	uploading *fairqueue.Slot // its turn to upload; nil for none
	guest     bool            // there is no token

	*control.Session // another in each transaction; its Tx is nil outside

	recalled map[string]any // rows for views, by table and GUID
	reads    *store.Reads   // notes what the last transaction read; nil: nothing does
}

// doc is a JSON object of an answer.
type doc = map[string]any

// Context is the request's.
func (c *call) Context() context.Context { return c.Request.Context() }

// writes reports whether the call changes anything.
func (c *call) writes() bool {
	return c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead
}

// param is a wildcard of the route's path.
func (c *call) param(name string) string { return c.Request.PathValue(name) }

// guid is the wildcard {guid}.
func (c *call) guid() string { return c.param("guid") }

// fromCLI reports whether the official CLI or our own asks: they have no
// overall time-out, so their polls may be held until there is news.
func (c *call) fromCLI() bool {
	return c.delaysLogs() || strings.HasPrefix(c.Request.UserAgent(), "cupola/")
}

// delaysLogs reports whether the official CLI asks, which reads logs during other calls. Its user agent is its file's name and version.
func (c *call) delaysLogs() bool {
	name, _, _ := strings.Cut(c.Request.UserAgent(), "/")
	return name == "cf" || name == "cf7" || name == "cf8" || name == "cf9"
}

// base is scheme and host as the client sees them: every URL in an answer is
// absolute, or the CLI fails on it.
func (c *call) base() string {
	scheme := "http"
	if c.Request.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + c.Request.Host
}

// url is an absolute URL of this API.
func (c *call) url(format string, args ...any) string {
	return c.base() + fmt.Sprintf(format, args...)
}

// link is an entry of "links".
func (c *call) link(format string, args ...any) doc {
	return doc{"href": c.url(format, args...)}
}

// action is an entry of "links" that wants another method than GET.
func (c *call) action(method, format string, args ...any) doc {
	return doc{"href": c.url(format, args...), "method": method}
}

// write sends the answer.
func (c *call) write(res *response) {
	h := c.w.Header()
	maps.Copy(h, res.header)
	if len(c.Warnings) > 0 {
		var escaped []string
		for _, w := range c.Warnings {
			escaped = append(escaped, url.QueryEscape(w))
		}
		h.Set("X-Cf-Warnings", strings.Join(escaped, ","))
	}
	if res.raw != nil {
		res.raw(c.w, c.Request)
		return
	}
	if res.body != nil {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	c.w.WriteHeader(cmp.Or(res.status, http.StatusOK))
	if res.body != nil {
		enc := json.NewEncoder(c.w)
		enc.SetEscapeHTML(false)
		enc.Encode(res.body)
	}
}

func ok(body any) (*response, error) { return &response{body: body}, nil }
func created(body any) (*response, error) {
	return &response{status: http.StatusCreated, body: body}, nil
}
func noContent() (*response, error) { return &response{status: http.StatusNoContent}, nil }
