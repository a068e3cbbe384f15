package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// site is a router behind a real server, with its access log.
type site struct {
	*Router
	addr string

	mu  sync.Mutex
	log []string
}

func newSite(t *testing.T, c Config) *site {
	t.Helper()
	s := &site{}
	c.Log = slog.New(slog.DiscardHandler)
	c.AccessLog = func(e AccessEntry) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, e.AppGUID+" "+string(e.Line))
	}
	s.Router = New(c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	server := NewServer(s.Router, c.Log, c.Timeouts)
	go server.Serve(ahead(s.Router, Guard(l, nil, s.config.Gate), Direct{Handler: s.Router}))
	t.Cleanup(func() { server.Close() })
	return s
}

// indirect has all tests of the package go through net/http.
var indirect = os.Getenv("ROUTER_INDIRECT") != ""

// ahead is r.Ahead, unless all goes through net/http.
func ahead(r *Router, l net.Listener, d Direct) net.Listener {
	if indirect {
		return l
	}
	return r.Ahead(l, d)
}

// lines is the access log so far.
func (s *site) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

const (
	appGUID  = "11111111-2222-3333-4444-555555555555"
	otherApp = "99999999-2222-3333-4444-555555555555"
)

// backend starts an app instance that says its name, and what else handler says.
func app(t *testing.T, name string, index int, handler http.HandlerFunc) Endpoint {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler != nil {
			handler(w, r)
			return
		}
		fmt.Fprint(w, name)
	}))
	t.Cleanup(s.Close)
	return endpointOf(s.Listener.Addr().String(), name, index)
}

func endpointOf(addr, name string, index int) Endpoint {
	return Endpoint{Address: addr, AppGUID: appGUID, ProcessGUID: appGUID + "-" + otherApp, InstanceGUID: name, Index: index}
}

// deadAddr is an address that refuses connections.
func deadAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func route(host string, endpoints ...Endpoint) Route {
	return Route{Host: host, AppGUID: appGUID, Endpoints: endpoints}
}

// answer is what a test looks at of a response.
type answer struct {
	status int
	header http.Header
	body   string
}

// get asks for a URL like "app.test/path", with headers as pairs.
func (s *site) get(t *testing.T, url string, headers ...string) answer {
	t.Helper()
	host, path, _ := strings.Cut(url, "/")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr+"/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return do(t, http.DefaultTransport, req)
}

func do(t *testing.T, transport http.RoundTripper, req *http.Request) answer {
	t.Helper()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, strings.TrimSuffix(string(body), "\n")}
}

// raw sends text on its own connection and returns all that comes back.
func (s *site) raw(t *testing.T, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	all, _ := io.ReadAll(bufio.NewReader(conn))
	return string(all)
}

func TestRouting(t *testing.T) {
	s := newSite(t, Config{})
	var routes []Route
	for _, r := range []string{"app.test", "app.test/api", "app.test/api/v2", "*.wild.test", "exact.wild.test/only", "*.deep.wild.test", "UPPER.test"} {
		host, path, found := strings.Cut(r, "/")
		if found {
			path = "/" + path
		}
		routes = append(routes, Route{Host: host, Path: path, AppGUID: appGUID, Endpoints: []Endpoint{app(t, r, 0, nil)}})
	}
	s.Set(Table{Routes: routes})
	tests := []struct{ url, want string }{
		{"app.test/", "app.test"},
		{"APP.test:8080/", "app.test"},
		{"app.test/api", "app.test/api"},
		{"app.test/API/x", "app.test/api"},
		{"app.test/apis", "app.test"},
		{"app.test/api/v2/x?y=/", "app.test/api/v2"},
		{"app.test/api/v22", "app.test/api"},
		{"a.wild.test/", "*.wild.test"},
		{"a.b.wild.test/", "*.wild.test"},
		{"exact.wild.test/only", "exact.wild.test/only"},
		{"exact.wild.test/else", "*.wild.test"},
		{"x.deep.wild.test/", "*.deep.wild.test"},
		{"deep.wild.test/", "*.wild.test"},
		{"upper.test/", "UPPER.test"},
		{"wild.test/", "404 Not Found: Requested route ('wild.test') does not exist."},
		{"other.test:80/", "404 Not Found: Requested route ('other.test:80') does not exist."},
	}
	for _, tt := range tests {
		if got := s.get(t, tt.url); got.body != tt.want {
			t.Errorf("%s: got %q; want %q", tt.url, got.body, tt.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	s := newSite(t, Config{})
	dead := endpointOf(deadAddr(t), "dead", 0)
	s.Set(Table{Routes: []Route{route("empty.test"), route("dead.test", dead), route("app.test", app(t, "one", 0, nil))}})
	tests := []struct {
		url     string
		headers []string
		status  int
		err     string
		body    string
	}{
		{"none.test/", nil, 404, "unknown_route", "404 Not Found: Requested route ('none.test') does not exist."},
		{"empty.test/", nil, 404, "unknown_route", "404 Not Found: Requested route ('empty.test') does not exist."},
		{"dead.test/", nil, 502, "endpoint_failure (dial tcp " + dead.Address + ": connect: connection refused)", "502 Bad Gateway: Registered endpoint failed to handle the request."},
		{"app.test/", []string{"X-Cf-App-Instance", "nonsense"}, 400, "invalid_cf_app_instance_header", "400 Bad Request: Invalid X-CF-App-Instance Header"},
		{"app.test/", []string{"X-Cf-App-Instance", appGUID}, 400, "invalid_cf_app_instance_header", "400 Bad Request: Invalid X-CF-App-Instance Header"},
		{"app.test/", []string{"X-Cf-App-Instance", appGUID + ":7"}, 400, "unknown_route", "400 Bad Request: Requested instance ('7') with guid ('" + appGUID + "') does not exist for route ('app.test')"},
		{"none.test/", []string{"X-Cf-App-Instance", appGUID + ":0"}, 400, "unknown_route", "400 Bad Request: Requested instance ('0') with guid ('" + appGUID + "') does not exist for route ('none.test')"},
		{"app.test/", []string{"X-Cf-Process-Instance", otherApp}, 400, "unknown_route", "400 Bad Request: Requested instance with process guid ('" + otherApp + "') does not exist for route ('app.test')"},
	}
	for _, tt := range tests {
		got := s.get(t, tt.url, tt.headers...)
		if got.status != tt.status || got.body != tt.body || got.header.Get("X-Cf-RouterError") != tt.err {
			t.Errorf("%s %v: got %d %q, error %q; want %d %q, error %q", tt.url, tt.headers, got.status, got.body, got.header.Get("X-Cf-RouterError"), tt.status, tt.body, tt.err)
		}
		if got.header.Get("X-Vcap-Request-Id") == "" || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: got headers %v", tt.url, got.header)
		}
	}
	if got := s.raw(t, "GET / HTTP/1.0\r\n\r\n"); !strings.Contains(got, "400 Bad Request: Request had empty Host header") {
		t.Errorf("without a host: got %q", got)
	}
}

func TestInstanceAddressing(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "zero", 0, nil), app(t, "one", 1, nil), app(t, "two", 2, nil))}})
	for range 3 {
		if got := s.get(t, "app.test/", "X-Cf-App-Instance", appGUID+":1"); got.body != "one" {
			t.Errorf("got %q; want one", got.body)
		}
		if got := s.get(t, "app.test/", "X-Cf-Process-Instance", appGUID+":2"); got.body != "two" {
			t.Errorf("got %q; want two", got.body)
		}
	}
}

func TestRoundRobinAndRetry(t *testing.T) {
	s := newSite(t, Config{})
	one, two, dead := app(t, "one", 0, nil), app(t, "two", 1, nil), endpointOf(deadAddr(t), "dead", 2)
	s.Set(Table{Routes: []Route{route("app.test", one, two, dead)}})
	got := map[string]int{}
	for range 12 {
		got[s.get(t, "app.test/").body]++
	}
	if got["one"]+got["two"] != 12 || got["one"] < 4 || got["two"] < 4 {
		t.Errorf("got %v; want all answered by one and two alike", got)
	}
	s.Set(Table{Routes: []Route{route("app.test", dead, two)}})
	if got := s.get(t, "app.test/").body; got != "two" {
		t.Errorf("got %q; want two", got)
	}
	s.Set(Table{})
	if got := s.get(t, "app.test/").status; got != 404 {
		t.Errorf("got %d; want 404", got)
	}
}

// TestLastEndpointGoes lets a request be admitted and then takes the last
// endpoint away, as a stopped app does.
func TestLastEndpointGoes(t *testing.T) {
	for _, tt := range []struct {
		after  Table
		empty  time.Duration
		status int
		body   string
	}{
		{Table{Routes: []Route{route("app.test")}}, 0, 404, "404 Not Found: Requested route ('app.test') does not exist."},
		{Table{Routes: []Route{route("app.test")}}, time.Hour, 503, "503 Service Unavailable: Requested route ('app.test') has no available endpoints."},
		{Table{}, time.Hour, 404, "404 Not Found: Requested route ('app.test') does not exist."},
	} {
		s := newSite(t, Config{EmptyPool: tt.empty})
		s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, nil))}})
		endpoint := s.index.Load().lookup("app.test", "/").endpoints[0]
		endpoint.removed.Store(true) // the request takes it, lets it go and looks again
		result := make(chan answer)
		go func() { result <- s.get(t, "app.test/") }()
		<-endpoint.requests.zero
		s.Set(tt.after)
		if got := <-result; got.status != tt.status || got.body != tt.body {
			t.Errorf("got %d %q; want %d %q", got.status, got.body, tt.status, tt.body)
		}
	}
}

// TestEmptyPool: a pool that is empty for good is as if the route were not there
// (gorouter: registry.unregister and pruneStaleDroplets delete the pool).
func TestEmptyPool(t *testing.T) {
	r := New(Config{Log: slog.New(slog.DiscardHandler), EmptyPool: 10 * time.Second})
	table := func(some ...Endpoint) Table {
		return Table{Routes: []Route{route("*.test", endpointOf("192.0.2.1:1", "wild", 0)), route("app.test", some...), {Host: "app.test", Path: "/api"}}}
	}
	found := func() string {
		p := r.index.Load().lookup("app.test", "/api/x")
		if len(p.endpoints) == 0 {
			return "empty"
		}
		return p.endpoints[0].InstanceGUID
	}
	back := func(d time.Duration) { // the pool's last endpoint left that much earlier
		for _, p := range r.index.Load().exact["app.test"] {
			if !p.emptied.IsZero() {
				p.emptied = p.emptied.Add(-d)
			}
		}
	}
	step := func(what, want string) {
		t.Helper()
		if got := found(); got != want {
			t.Errorf("%s: got %q; want %q", what, got, want)
		}
	}
	r.Set(table())
	step("never had an endpoint", "wild")
	r.Set(table(endpointOf("192.0.2.1:2", "app", 0)))
	step("has one", "app")
	r.Set(table())
	step("has lost it", "empty")
	back(9 * time.Second)
	r.Set(table())
	step("nine seconds later", "empty")
	back(time.Second)
	step("ten seconds later", "wild")
	r.Set(table(endpointOf("192.0.2.1:2", "app", 0)))
	step("has one again", "app")
}

func TestDrainAndSettle(t *testing.T) {
	s := newSite(t, Config{})
	arrived, goOn := make(chan bool), make(chan bool)
	slow := app(t, "slow", 0, func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-goOn
		fmt.Fprint(w, "done")
	})
	s.Set(Table{Routes: []Route{route("app.test", slow)}})
	result := make(chan answer)
	go func() { result <- s.get(t, "app.test/") }()
	<-arrived
	s.Set(Table{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Settle(ended, "slow"); err == nil {
		t.Error("settled with a request under way")
	}
	if err := s.Drain(ended); err == nil {
		t.Error("drained with a request under way")
	}
	settled := make(chan error, 2)
	go func() { settled <- s.Settle(t.Context(), "slow") }()
	go func() { settled <- s.Drain(t.Context()) }()
	goOn <- true
	if got := <-result; got.body != "done" || got.status != 200 {
		t.Errorf("got %d %q; want the request served to its end", got.status, got.body)
	}
	for range 2 {
		if err := <-settled; err != nil {
			t.Error(err)
		}
	}
}

// TestReplacementUnderLoad replaces the only instance of an app again and
// again while requests come: none may fail.
func TestReplacementUnderLoad(t *testing.T) {
	s := newSite(t, Config{})
	start := func(i int) (*httptest.Server, Endpoint) {
		server := httptest.NewServer(http.HandlerFunc(echo))
		return server, endpointOf(server.Listener.Addr().String(), fmt.Sprint("instance-", i), 0)
	}
	server, endpoint := start(0)
	s.Set(Table{Routes: []Route{route("app.test", endpoint)}})
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var served atomic.Int64
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.addr+"/", strings.NewReader("body"))
				req.Host = "app.test"
				res, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != 200 {
					t.Errorf("got %d, %v, %s", res.StatusCode, err, res.Header.Get("X-Cf-RouterError"))
				}
				res.Body.Close()
				served.Add(1)
			}
		})
	}
	for i := range 30 {
		for goal := served.Load() + 20; served.Load() < goal && !t.Failed(); {
			runtime.Gosched()
		}
		old, oldEndpoint := server, endpoint
		server, endpoint = start(i + 1)
		s.Set(Table{Routes: []Route{route("app.test", endpoint)}})
		if err := s.Settle(t.Context(), oldEndpoint.InstanceGUID); err != nil {
			t.Error(err)
		}
		old.CloseClientConnections() // as a kill would
		old.Close()
	}
	stop()
	clients.Wait()
	server.Close()
}
