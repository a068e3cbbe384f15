// Package osbtest is a service broker for tests: a real HTTP server with a
// catalog, which keeps what it is asked to make and misbehaves on request.
package osbtest

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// The credentials that a Broker wants.
const (
	Username = "joe"
	Password = "pass word"
)

// Request is a request that a Broker got.
type Request struct {
	Method, Path, Query string
	Header              http.Header
	Body                map[string]any // nil when there was none
}

// Broker is a broker. Its Catalog may be changed between requests under Do.
type Broker struct {
	*httptest.Server
	mu       sync.Mutex
	catalog  string
	async    bool
	polls    int // that an asynchronous operation takes
	requests []Request
	watch    func(*http.Request)
	faults   map[string]http.HandlerFunc // method and kind → what is answered instead
	things   map[string]*thing           // by path
}

// thing is an instance or a binding.
type thing struct {
	body     map[string]any
	making   int // polls until it is made
	deleting int // polls until it is gone; 0: it is not being deleted
	changing int
}

// Catalog is what a new Broker offers: "db" with plans "small" and "large", and
// the parts of it that tests use.
const Catalog = `{"services": [{"id": "db-id", "name": "db", "description": "a database", "bindable": true, "plan_updateable": true,
"instances_retrievable": true, "bindings_retrievable": true, "allow_context_updates": true, "tags": ["sql"], "requires": ["syslog_drain"],
"metadata": {"shareable": true, "documentationUrl": "http://docs.example"},
"plans": [{"id": "small-id", "name": "small", "description": "a small one", "binding_rotatable": true, "maintenance_info": {"version": "1.0.0"},
  "schemas": {"service_instance": {"create": {"parameters": {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}}}}},
 {"id": "large-id", "name": "large", "description": "a large one", "free": false, "maintenance_info": {"version": "2.0.0"},
  "metadata": {"costs": [{"amount": {"usd": 9.5}, "unit": "MONTHLY"}]}}]},
{"id": "route-id", "name": "proxy", "description": "a route service", "bindable": true, "requires": ["route_forwarding"],
"plans": [{"id": "proxy-id", "name": "only", "description": "the only one"}]}]}`

// New starts a Broker.
func New() *Broker {
	b := &Broker{catalog: Catalog, polls: 1, faults: map[string]http.HandlerFunc{}, things: map[string]*thing{}}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	return b
}

// SetCatalog changes the catalog, JSON or not.
func (b *Broker) SetCatalog(text string) { b.do(func() { b.catalog = text }) }

// SetAsync makes the broker's operations asynchronous; each takes that many
// polls.
func (b *Broker) SetAsync(on bool, polls int) { b.do(func() { b.async, b.polls = on, polls }) }

// Fault answers requests of a method and a kind ("catalog", "instance",
// "binding" or "last_operation") with f; nil ends it.
func (b *Broker) Fault(method, kind string, f http.HandlerFunc) {
	b.do(func() {
		if f == nil {
			delete(b.faults, method+" "+kind)
			return
		}
		b.faults[method+" "+kind] = f
	})
}

// Watch calls f with each request before the response.
func (b *Broker) Watch(f func(*http.Request)) { b.do(func() { b.watch = f }) }

func (b *Broker) do(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// Requests are the requests so far.
func (b *Broker) Requests() (list []Request) {
	b.do(func() { list = slices.Clone(b.requests) })
	return list
}

// Things are the paths of the instances and bindings that the broker has.
func (b *Broker) Things() (list []string) {
	b.do(func() { list = slices.Sorted(maps.Keys(b.things)) })
	return list
}

// Answer is a handler that answers with a status and a body.
func Answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that left needs no answer
	}
}

// Obey does what a request asks for, and answers nothing.
func (b *Broker) Obey(r *http.Request) {
	b.do(func() { b.handle(httptest.NewRecorder(), r, map[string]any{}) })
}

// Cut is a handler that does what it was asked for and cuts the connection
// before it answers.
func (b *Broker) Cut(w http.ResponseWriter, r *http.Request) {
	b.Obey(r)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

func kindOf(path string) string {
	switch {
	case path == "/v2/catalog":
		return "catalog"
	case strings.HasSuffix(path, "/last_operation"):
		return "last_operation"
	case strings.Contains(path, "/service_bindings/"):
		return "binding"
	}
	return "instance"
}

func (b *Broker) serve(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var body map[string]any
	_ = json.Unmarshal(text, &body) // most have none
	r.Body = io.NopCloser(strings.NewReader(string(text)))
	b.mu.Lock()
	b.requests = append(b.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header, body})
	fault, watch := b.faults[r.Method+" "+kindOf(r.URL.Path)], b.watch
	b.mu.Unlock()
	if watch != nil {
		watch(r)
	}
	if user, password, _ := r.BasicAuth(); user != Username || password != Password {
		Answer(http.StatusUnauthorized, `{}`)(w, r)
		return
	}
	if fault != nil {
		fault(w, r)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handle(w, r, body)
}

func (b *Broker) handle(w http.ResponseWriter, r *http.Request, body map[string]any) {
	path := strings.TrimSuffix(r.URL.Path, "/last_operation")
	switch {
	case path == "/v2/catalog":
		Answer(http.StatusOK, b.catalog)(w, r)
	case path != r.URL.Path:
		b.poll(w, r, path)
	case r.Method == http.MethodPut:
		b.create(w, r, body)
	case b.things[path] == nil:
		Answer(http.StatusGone, `{}`)(w, r)
	case r.Method == http.MethodDelete:
		b.delete(w, r)
	case r.Method == http.MethodPatch:
		b.update(w, r, body)
	default:
		b.fetch(w, r)
	}
}

func (b *Broker) create(w http.ResponseWriter, r *http.Request, body map[string]any) {
	t := b.things[r.URL.Path]
	status := http.StatusOK
	if t == nil {
		status = http.StatusCreated
		t = &thing{body: body}
		b.things[r.URL.Path] = t
		if b.async {
			t.making = b.polls
		}
	}
	if t.making > 0 {
		Answer(http.StatusAccepted, `{"operation": "making"}`)(w, r)
		return
	}
	Answer(status, described(r.URL.Path))(w, r)
}

// described is what a thing is described by.
func described(path string) string {
	if kindOf(path) == "instance" {
		return `{"dashboard_url": "http://dashboard.example", "metadata": {"labels": {"from": "broker"}}}`
	}
	return `{"credentials": {"uri": "db://` + path[strings.LastIndex(path, "/")+1:] + `", "port": 5432}}`
}

func (b *Broker) update(w http.ResponseWriter, r *http.Request, body map[string]any) {
	t := b.things[r.URL.Path]
	maps.Copy(t.body, body)
	if b.async {
		t.changing = b.polls
		Answer(http.StatusAccepted, `{"operation": "changing"}`)(w, r)
		return
	}
	Answer(http.StatusOK, `{}`)(w, r)
}

func (b *Broker) delete(w http.ResponseWriter, r *http.Request) {
	if b.async {
		b.things[r.URL.Path].deleting = b.polls
		Answer(http.StatusAccepted, `{"operation": "deleting"}`)(w, r)
		return
	}
	delete(b.things, r.URL.Path)
	Answer(http.StatusOK, `{}`)(w, r)
}

func (b *Broker) fetch(w http.ResponseWriter, r *http.Request) {
	t := b.things[r.URL.Path]
	var d map[string]any
	if err := json.Unmarshal([]byte(described(r.URL.Path)), &d); err != nil {
		panic(err) // it is a constant
	}
	if p, ok := t.body["parameters"]; ok {
		d["parameters"] = p
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // it was JSON
	}
	Answer(http.StatusOK, string(text))(w, r)
}

func (b *Broker) poll(w http.ResponseWriter, r *http.Request, path string) {
	t := b.things[path]
	if t == nil {
		Answer(http.StatusGone, `{}`)(w, r)
		return
	}
	for _, n := range []*int{&t.making, &t.changing, &t.deleting} {
		if *n == 0 {
			continue
		}
		*n--
		if *n > 0 {
			Answer(http.StatusOK, `{"state": "in progress", "description": "still at it"}`)(w, r)
			return
		}
		if n == &t.deleting {
			delete(b.things, path)
		}
	}
	Answer(http.StatusOK, `{"state": "succeeded", "description": "done"}`)(w, r)
}
