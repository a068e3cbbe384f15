package router

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// tableOf gives an index of routes written "host/path".
func tableOf(routes ...string) *index {
	var t Table
	for _, r := range routes {
		host, path, found := strings.Cut(r, "/")
		if found {
			path = "/" + path
		}
		t.Routes = append(t.Routes, Route{Host: host, Path: path, AppGUID: r, Endpoints: []Endpoint{{Address: "192.0.2.1:1"}}})
	}
	return (&indexer{dozeOf: func(string) *doze { return &doze{} }, old: &index{}, newBackend: func(Endpoint) *backend { return nil }, secures: func(Endpoint) bool { return false }}).build(t)
}

// naive says by trying them all which route a request takes.
func naive(routes []string, host, path string) string {
	best, bestRank := "", -1
	for _, r := range routes {
		routeHost, routePath, found := strings.Cut(r, "/")
		if found {
			routePath = "/" + routePath
		}
		rank := 1 << 20
		if suffix, ok := strings.CutPrefix(routeHost, "*"); ok {
			if !strings.HasSuffix(host, suffix) {
				continue
			}
			rank = len(suffix) << 10
		} else if host != routeHost {
			continue
		}
		if path != routePath && !strings.HasPrefix(path, routePath+"/") && routePath != "" {
			continue
		}
		if rank += len(routePath); rank > bestRank {
			best, bestRank = r, rank
		}
	}
	return best
}

func FuzzLookup(f *testing.F) {
	routes := []string{"a.b", "a.b/x", "a.b/x/y", "*.b", "*.a.b/x", "*.c.b", "c.b/only"}
	x := tableOf(routes...)
	f.Add("A.b:80", "/x/y/z")
	f.Add("q.c.b", "/")
	f.Add("..b", "//x")
	f.Fuzz(func(t *testing.T, header, path string) {
		if strings.ToLower(path) != path {
			return
		}
		got := ""
		host := hostOf(header)
		if p := x.lookup(host, path); p != nil {
			got = p.appGUID
		}
		if want := naive(routes, host, path); got != want {
			t.Errorf("%q %q: got %q; want %q", host, path, got, want)
		}
	})
}

// TestSetKeepsBackends: connections and marks of an endpoint outlive tables.
func TestSetKeepsBackends(t *testing.T) {
	s := newSite(t, Config{})
	one, two := Endpoint{Address: "10.0.0.1:80", InstanceGUID: "one"}, Endpoint{Address: "10.0.0.2:80", InstanceGUID: "two"}
	s.Set(Table{Routes: []Route{route("app.test", one, two)}})
	before := s.index.Load().lookup("app.test", "/").endpoints
	s.Set(Table{Routes: []Route{route("app.test", two), route("other.test", two)}})
	after := s.index.Load().lookup("app.test", "/").endpoints
	if after[0].backend != before[1].backend || after[0].backend != s.index.Load().lookup("other.test", "/").endpoints[0].backend {
		t.Error("the endpoint that stayed has another backend")
	}
	if !before[0].removed.Load() || before[1].removed.Load() {
		t.Error("got the wrong endpoint marked as removed")
	}
	before[0].acquire()
	s.Set(Table{Routes: []Route{route("app.test", one)}})
	if got := s.index.Load().lookup("app.test", "/").endpoints[0].backend; got.removed.Load() {
		t.Error("the endpoint that came back is marked as removed")
	}
}

// TestSetMergesRoutes: two apps may share a route.
func TestSetMergesRoutes(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "one", 0, nil)), route("APP.test", app(t, "two", 0, nil))}})
	got := map[string]int{}
	for range 4 {
		got[s.get(t, "app.test/").body]++
	}
	if got["one"] != 2 || got["two"] != 2 {
		t.Errorf("got %v; want both alike", got)
	}
}

func TestLeastConnection(t *testing.T) {
	s := newSite(t, Config{})
	r := route("app.test", Endpoint{Address: "a", InstanceGUID: "a"}, Endpoint{Address: "b", InstanceGUID: "b"}, Endpoint{Address: "c", InstanceGUID: "c"})
	r.Options.LoadBalancing = LeastConnection
	s.Set(Table{Routes: []Route{r}})
	p := s.index.Load().lookup("app.test", "/")
	for range 9 {
		p.pick(p.endpoints, choice{}).acquire()
	}
	for _, e := range p.endpoints {
		if n := e.requests.n.Load(); n != 3 {
			t.Errorf("%s has %d requests; want 3", e.Address, n)
		}
	}
}

func TestDownEndpointsComeLast(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", Endpoint{Address: "a", InstanceGUID: "a"}, Endpoint{Address: "b", InstanceGUID: "b"})}})
	p := s.index.Load().lookup("app.test", "/")
	p.endpoints[0].markDown(time.Now())
	for range 4 {
		if e := p.pick(p.endpoints, choice{}); e.Address != "b" {
			t.Errorf("got %s; want the one that is up", e.Address)
		}
	}
	p.endpoints[1].markDown(time.Now())
	if p.pick(p.endpoints, choice{}) == nil {
		t.Error("got none; want one although all are marked down")
	}
	if e := p.pick(p.endpoints, choice{tried: []*backend{p.endpoints[1].backend}}); e.Address != "a" {
		t.Errorf("got %s; want the one not tried", e.Address)
	}
}

func BenchmarkLookup(b *testing.B) {
	var routes []string
	for i := range 1000 {
		routes = append(routes, fmt.Sprintf("app-%d.example.com", i))
	}
	x := tableOf(append(routes, "*.example.com")...)
	for b.Loop() {
		if x.lookup("app-500.example.com", "/some/path") == nil || x.lookup("none.example.com", "/") == nil {
			b.Fatal("got no pool")
		}
	}
}
