package ingress

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/server/router"
	"cupola/store/cf"
)

func instance(process, guid string, index int, change func(*lrp.Actual)) *lrp.Actual {
	a := &lrp.Actual{Key: lrp.Key{ProcessGUID: process + "-0123abcd", Index: index}, InstanceGUID: guid, State: lrp.Running, Ready: true, Address: "10.0.0.1"}
	if change != nil {
		change(a)
	}
	return a
}

func TestRoutes(t *testing.T) {
	resource := func(guid string) cf.Resource { return cf.Resource{GUID: guid} }
	in := rows{
		domains: []*cf.Domain{{Resource: resource("d"), Name: "example.com"}, {Resource: resource("i"), Name: "apps.internal", Internal: true}},
		processes: []*cf.Process{
			{Resource: resource("web-1"), AppGUID: "a", Type: "web"},
			{Resource: resource("work-1"), AppGUID: "a", Type: "worker", Placement: cf.Placement{Segment: "red"}},
		},
		instances: []*lrp.Actual{
			instance("web-1", "i0", 0, nil),
			instance("web-1", "i1", 1, func(a *lrp.Actual) { a.Ready = false }),
			instance("web-1", "i2", 2, func(a *lrp.Actual) { a.Stopping = true }),
			instance("web-1", "i3", 3, func(a *lrp.Actual) { a.State = lrp.Claimed }),
			instance("web-1", "i4", 4, func(a *lrp.Actual) { a.Address = "fd00::1" }),
			instance("work-1", "w0", 0, nil),
			instance("gone-1", "g0", 0, nil),
		},
		routes: []*cf.Route{
			{Host: "hello", DomainGUID: "d", Destinations: []cf.Destination{{AppGUID: "a", ProcessType: "web"}}, Options: map[string]any{"loadbalancing": "least-connection"}},
			{Host: "hello", Path: "/work", DomainGUID: "d", Destinations: []cf.Destination{{AppGUID: "a", ProcessType: "worker", Port: 9000, Protocol: "http2"}}},
			{Host: "*", DomainGUID: "d", Destinations: []cf.Destination{{AppGUID: "a", ProcessType: "clock"}}},
			{DomainGUID: "d", Destinations: []cf.Destination{{AppGUID: "b"}}},
			{Host: "unmapped", DomainGUID: "d"},
			{Host: "hello", DomainGUID: "i", Destinations: []cf.Destination{{AppGUID: "a"}}},
		},
	}
	want := []router.Route{
		{Host: "hello.example.com", AppGUID: "a", Options: router.Options{LoadBalancing: router.LeastConnection}, Endpoints: []router.Endpoint{
			{Address: "10.0.0.1:8080", Protocol: "http1", AppGUID: "a", ProcessGUID: "web-1", InstanceGUID: "i0"},
			{Address: "[fd00::1]:8080", Protocol: "http1", AppGUID: "a", ProcessGUID: "web-1", InstanceGUID: "i4", Index: 4},
		}},
		{Host: "hello.example.com", Path: "/work", AppGUID: "a", Endpoints: []router.Endpoint{
			{Address: "10.0.0.1:9000", Protocol: "http2", AppGUID: "a", ProcessGUID: "work-1", InstanceGUID: "w0", Segment: "red"}}},
		{Host: "*.example.com", AppGUID: "a"},
		{Host: "example.com", AppGUID: "b"},
	}
	if d := cmp.Diff(want, in.table().Routes); d != "" {
		t.Error(d)
	}
	zones, names := in.internalNames()
	if d := cmp.Diff(zones, []string{"apps.internal"}); d != "" {
		t.Error(d)
	}
	if got := names["hello.apps.internal"]; len(names) != 1 || len(got) != 2 || got[0].InstanceGUID != "i0" || got[1].InstanceGUID != "i4" {
		t.Errorf("got %v; want the instances that a route would lead to", names)
	}
}

// An instance with TLS ports is reached by them: at the one of the route's port, and
// under the names of internal routes, which its certificate has.
func TestTLSAddresses(t *testing.T) {
	a := func(guid string, tls bool) *lrp.Actual {
		return &lrp.Actual{InstanceGUID: guid, State: lrp.Running, Ready: true, Address: "10.0.0.1", Ports: []uint16{2222, 8080}, TLSPorts: tls}
	}
	for port, want := range map[uint16]string{2222: "10.0.0.1:61001", 8080: "10.0.0.1:61002", 9000: ""} {
		if got := endpoint(a("i", true), port, "", "", "http1").TLSAddress; got != want {
			t.Errorf("%d: got %q; want %q", port, got, want)
		}
	}
	if got := endpoint(a("i", false), 8080, "", "", "http1").TLSAddress; got != "" {
		t.Errorf("got %q for an instance without TLS ports", got)
	}
	one, two := a("one", true), a("two", true)
	got := certified(map[string][]*lrp.Actual{"b.apps.internal": {one, two, one}, "a.apps.internal": {one}, "é.apps.internal": {two}})
	if d := cmp.Diff(map[string][]string{"one": {"a.apps.internal", "b.apps.internal"}, "two": {"b.apps.internal"}}, got); d != "" {
		t.Error(d)
	}
}
