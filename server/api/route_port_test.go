package api

import (
	"net/url"
	"strings"
	"testing"

	"cupola/server/control"
	"cupola/server/control/routes"
	"cupola/store"
	"cupola/store/cf"
)

// seedTCP adds a TCP domain, domain-9, and another, domain-10.
func seedTCP(tx *store.Tx) error {
	return control.OrElse(store.Domains.Insert(tx, &cf.Domain{Resource: guid("domain-9"), Name: "tcp.test", RouterGroupGUID: cf.DefaultTCPGUID}),
		store.Domains.Insert(tx, &cf.Domain{Resource: guid("domain-10"), Name: "tcp2.test", RouterGroupGUID: cf.DefaultTCPGUID}))
}

// routeIn is a request for a route in space-1; more is what else it says.
func routeIn(domain, more string) string {
	return `{` + more + `"relationships": {"space": {"data": {"guid": "space-1"}}, "domain": {"data": {"guid": "` + domain + `"}}}}`
}

func TestTCPDomains(t *testing.T) {
	w := newWorld(t)
	const group = `"router_group": {"guid": "` + cf.DefaultTCPGUID + `"}`
	domain := func(more string) string { return `{"name": "tcp.test", ` + more + `}` }
	refuse := func(more, text string) step {
		return step{method: "POST", path: "/v3/domains", body: domain(more), status: 422, want: detail(10008, text)}
	}
	w.run(t, []step{
		{method: "GET", path: "/", status: 200, want: `{"links": {"routing": {"href": "{url}/routing"}}}`},
		{as: "space_auditor", method: "GET", path: "/routing/v1/router_groups", status: 200,
			want: `[{"guid": "` + cf.DefaultTCPGUID + `", "name": "default-tcp", "type": "tcp", "reservable_ports": "1024-1027"}]`},
		{method: "GET", path: "/routing/v1/router_groups?name=default-tcp", status: 200, want: `[{"name": "default-tcp"}]`},
		{method: "GET", path: "/routing/v1/router_groups?name=x", status: 404, want: `{"name": "ResourceNotFoundError", "message": "router group 'x' not found"}`},
		refuse(`"router_group": 5`, "Router group must be an object"),
		refuse(`"router_group": {"name": "x"}`, "Router group Unknown field(s): 'name', Router group guid must be a string"),
		refuse(`"router_group": {"guid": "x"}`, "Router group with guid 'x' not found."),
		refuse(`"internal": true, `+group, "Internal domains cannot be associated to a router group."),
		refuse(toOrg+`, `+group, "Domains scoped to an organization cannot be associated to a router group."),
		{method: "POST", path: "/v3/domains", body: domain(group), status: 201, save: "tcp", want: `{"name": "tcp.test", ` + group + `, "supported_protocols": ["tcp"],
			"links": {"router_group": {"href": "{url}/routing/v1/router_groups/` + cf.DefaultTCPGUID + `"}}}`},
		{method: "GET", path: "/v3/organizations/org-1/domains/default", status: 200, want: `{"guid": "domain-1", "router_group": null, "supported_protocols": ["http"]}`},
	})
}

func TestTCPRoutes(t *testing.T) {
	w := newWorld(t)
	w.write(seedTCP)
	refuse := func(domain, more, text string) step {
		return step{method: "POST", path: "/v3/routes", body: routeIn(domain, more), status: 422, want: detail(10008, text)}
	}
	w.run(t, []step{
		refuse("domain-1", `"host": "a", "port": 1024, `, "Routes with protocol 'http' do not support ports."),
		refuse("domain-9", `"port": 70000, `, "Port must be less than or equal to 65535"),
		refuse("domain-9", `"port": 1024, "host": "a", `, "Hosts are not supported for TCP routes."),
		refuse("domain-9", `"port": 1024, "path": "/a", `, "Paths are not supported for TCP routes."),
		refuse("domain-9", `"port": null, `, "Routes with protocol 'tcp' must specify a port."),
		refuse("domain-9", `"port": 1028, `, "Port '1028' is not available. Try a different port or use a different domain."),
		refuse("domain-9", `"port": 1026, `, "Port '1026' is not available. Try a different port or use a different domain."),
		{method: "POST", path: "/v3/routes", body: routeIn("domain-9", `"port": 1024, `), status: 201, save: "route",
			want: `{"protocol": "tcp", "host": "", "path": "", "port": 1024, "url": "tcp.test:1024"}`},
		refuse("domain-9", `"port": 1024, `, "Route already exists with port '1024' for domain 'tcp.test'."),
		refuse("domain-10", `"port": 1024, `, "Port '1024' is not available. Try a different port or use a different domain."),
		{method: "POST", path: "/v3/routes", body: routeIn("domain-9", ""), status: 201},
		{method: "POST", path: "/v3/routes", body: routeIn("domain-10", ""), status: 201},
		refuse("domain-10", "", "There are no more ports available for this domain."),
		{method: "GET", path: "/v3/routes?domain_guids=domain-9&hosts=&paths=&ports=1024", status: 200, want: `{"pagination": {"total_results": 1}}`},
		{method: "GET", path: "/v3/routes?ports=1024,1025,1027", status: 200, want: `{"pagination": {"total_results": 3}}`},
		{method: "GET", path: "/v3/routes?ports=0", status: 200, want: `{"resources": [{"guid": "route-1", "port": null}]}`},
		{method: "GET", path: "/v3/domains/domain-9/route_reservations?port=1024", status: 200, want: `{"matching_route": true}`},
		{method: "GET", path: "/v3/domains/domain-9/route_reservations?port=1028", status: 200, want: `{"matching_route": false}`},
		{method: "GET", path: "/v3/spaces/space-1/usage_summary", status: 200, want: `{"usage_summary": {"routes": 4, "reserved_ports": 3}}`},
		{method: "POST", path: "/v3/routes/{route}/destinations", body: `{"destinations": [{"app": {"guid": "app-1"}, "protocol": "http2"}]}`, status: 422,
			want: detail(10008, "Cannot use 'http2' protocol for tcp routes; valid options are: [tcp].")},
		{method: "POST", path: "/v3/routes/{route}/destinations", body: `{"destinations": [{"app": {"guid": "app-1"}}]}`, status: 200, save: "to",
			want: `{"destinations": [{"protocol": "tcp", "port": 8080, "weight": null}]}`},
		{method: "GET", path: "/v3/apps/app-1/env", status: 200, want: `{"application_env_json": {"VCAP_APPLICATION": {"application_uris": ["hello.apps.test", "tcp.test:1024"]}}}`},
	})
}

func TestTCPRouteQuotas(t *testing.T) {
	w := newWorld(t)
	w.write(seedTCP)
	ports := func(n string) string { return `{"routes": {"total_reserved_ports": ` + n + `}}` }
	tcp := step{method: "POST", path: "/v3/routes", body: routeIn("domain-9", ""), status: 422}
	over := func(text string) step { s := tcp; s.want = detail(10008, text); return s }
	var quota string
	w.write(func(tx *store.Tx) error {
		o, err := store.Orgs.Get(tx, "org-1")
		quota = "/v3/organization_quotas/" + o.QuotaGUID
		return err
	})
	w.run(t, []step{
		{method: "PATCH", path: quota, body: ports("1"), status: 200},
		{method: "POST", path: "/v3/routes", body: routeIn("domain-9", ""), status: 201},
		over("Reserved route ports quota exceeded for organization 'org'."),
		{method: "PATCH", path: quota, body: ports("null"), status: 200},
		{method: "POST", path: "/v3/space_quotas", body: `{"name": "sq", "routes": {"total_reserved_ports": 1}, "relationships": {"organization": {"data": {"guid": "org-1"}}, "spaces": {"data": [{"guid": "space-1"}]}}}`, status: 201},
		over("Reserved route ports quota exceeded for space 'dev'."),
		{method: "POST", path: "/v3/routes", body: routeIn("domain-1", `"host": "b", `), status: 201},
	})
}

// TestTCPRoutesInManifests maps routes by a manifest, also one of a port that
// another program has.
func TestTCPRoutesInManifests(t *testing.T) {
	w := newWorld(t)
	w.write(seedTCP)
	apply := func(routes, state, detail string) {
		t.Helper()
		got := w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", "applications:\n- name: hello\n  routes:\n"+routes, "application/x-yaml")
		w.saved["job"] = guidOf(got)
		w.run(t, []step{{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "` + state + `", "errors": [` + detail + `]}`}})
	}
	for routes, want := range map[string]string{
		"  - route: hello.apps.test:1024\n":               "For route 'hello.apps.test:1024': Routes with protocol 'http' do not support ports.",
		"  - route: tcp.test\n":                           "For route 'tcp.test': Routes with protocol 'tcp' must specify a port.",
		"  - route: tcp.test:9999\n":                      "For route 'tcp.test:9999': Port '9999' is not available. Try a different port or use a different domain.",
		"  - route: nowhere.example\n":                    "No domains exist for route nowhere.example",
		"  - route: tcp.test:1024\n    protocol: http1\n": "For route 'tcp.test:1024': Cannot use 'http1' protocol for tcp routes; valid options are: [tcp].",
		"  - route: hello.apps.test\n    protocol: tcp\n": "For route 'hello.apps.test': Cannot use 'tcp' protocol for http routes; valid options are: [http1, http2].",
	} {
		apply(routes, "FAILED", `{"detail": "For application 'hello': `+want+`"}`)
	}
	apply("  - route: tcp.test:1024\n  - route: hello.apps.test\n    protocol: http2\n", "COMPLETE", "")
	w.run(t, []step{
		{method: "GET", path: "/v3/routes?ports=1024", status: 200, want: `{"resources": [{"url": "tcp.test:1024", "destinations": [{"app": {"guid": "app-1"}, "protocol": "tcp"}]}]}`},
		{method: "GET", path: "/v3/routes/route-1", status: 200, want: `{"destinations": [{"protocol": "http2"}]}`},
	})
	if got := w.ask("admin", "GET", "/v3/apps/app-1/manifest", "", ""); !strings.Contains(got.text, "tcp.test:1024") {
		t.Errorf("got %s; want the route with its port", got.text)
	}
}

// TestTakenPortIsTold warns who maps a route whose port another program took
// after it was made.
func TestTakenPortIsTold(t *testing.T) {
	w := newWorld(t)
	w.write(seedTCP)
	w.write(func(tx *store.Tx) error {
		return store.Routes.Insert(tx, &cf.Route{Resource: guid("route-9"), SpaceGUID: "space-1", DomainGUID: "domain-9", Port: 1026})
	})
	got := w.ask("admin", "POST", "/v3/routes/route-9/destinations", `{"destinations": [{"app": {"guid": "app-1"}}]}`, "")
	text, err := url.QueryUnescape(got.header.Get("X-Cf-Warnings"))
	if got.status != 200 || err != nil || !strings.Contains(text, "Port 1026 is in use by another program of this machine (address already in use)") {
		t.Errorf("got %d, warnings %q", got.status, text)
	}
}

// A range that is nearly full is looked through once, not asked for port by port
// while no other client can write.
func TestAnyPortOfMany(t *testing.T) {
	w := newWorld(t)
	w.write(seedTCP)
	w.write(func(tx *store.Tx) error {
		for port := 2000; port < 2300; port++ {
			if err := store.Routes.Insert(tx, &cf.Route{SpaceGUID: "space-1", DomainGUID: "domain-9", Port: port}); err != nil {
				return err
			}
		}
		c := &call{Session: &control.Session{Tx: tx, Platform: &control.Platform{TCPPorts: cf.PortRanges{{First: 2000, Last: 2300}}}}}
		before := w.store.Statements()
		port, err := routes.AnyPort(c.Session, &cf.Domain{RouterGroupGUID: cf.DefaultTCPGUID})
		if n := w.store.Statements() - before; port != 2300 || n > 3 {
			t.Errorf("got port %d, %v by %d statements; want 2300 by few", port, err, n)
		}
		return err
	})
}
