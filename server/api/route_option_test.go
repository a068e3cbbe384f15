package api

import (
	"strings"
	"testing"
)

func TestRouteOptions(t *testing.T) {
	w := newWorld(t)
	patch := func(options string, status int, want string) step {
		return step{method: "PATCH", path: "/v3/routes/route-1", body: `{"options": ` + options + `}`, status: status, want: want}
	}
	refuse := func(options, text string) step { return patch(options, 422, detail(10008, text)) }
	keep := func(options, kept string) step { return patch(options, 200, `{"options": `+kept+`}`) }
	long := strings.Repeat("x", 129)
	w.run(t, []step{
		refuse(`5`, "Options 'options' is not a valid object"),
		refuse(`null`, "Options 'options' is not a valid object"),
		refuse(`{"a": 1, "b": null}`, "Options Unknown field(s): 'a', 'b'"),
		refuse(`{"loadbalancing": "hash", "hash_header": "X"}`, "Options Loadbalancing must be one of 'round-robin, least-connection' if present, Options Unknown field(s): 'hash_header'"),
		keep(`{"loadbalancing": "least-connection", "hash_header": null}`, `{"loadbalancing": "least-connection"}`),
		keep(`{"loadbalancing": null}`, `{}`),
		{method: "PATCH", path: "/v3/feature_flags/hash_based_routing", body: `{"enabled": true}`, status: 200},
		refuse(`{"loadbalancing": "x"}`, "Options Loadbalancing must be one of 'round-robin, least-connection, hash' if present"),
		refuse(`{"loadbalancing": "hash"}`, "Hash header must be present when loadbalancing is set to hash."),
		refuse(`{"loadbalancing": "hash", "hash_header": "`+long+`"}`, "Options Hash header must be at most 128 characters"),
		refuse(`{"hash_balance": "12345678901234567"}`, "Options Hash balance must be at most 16 characters"),
		refuse(`{"hash_balance": "much"}`, "Options Hash balance must be a numeric value"),
		refuse(`{"hash_balance": "NaN"}`, "Options Hash balance must be a numeric value"),
		refuse(`{"hash_balance": 1}`, "Options Hash balance must be either 0 or between 1.1 and 10.0"),
		refuse(`{"hash_balance": 10.5}`, "Options Hash balance must be either 0 or between 1.1 and 10.0"),
		refuse(`{"loadbalancing": "round-robin", "hash_header": "X", "hash_balance": 2}`,
			"Options Hash header can only be set when loadbalancing is hash, Options Hash balance can only be set when loadbalancing is hash"),
		refuse(`{"hash_header": "`+strings.Repeat("x", 1024)+`"}`, "Options must be smaller than 1024 bytes (actual size is 1042 bytes), Options Hash header must be at most 128 characters"),
		keep(`{"loadbalancing": "hash", "hash_header": "X-Tenant", "hash_balance": "1.25"}`, `{"loadbalancing": "hash", "hash_header": "X-Tenant", "hash_balance": "1.3"}`),
		keep(`{"hash_balance": 2}`, `{"loadbalancing": "hash", "hash_header": "X-Tenant", "hash_balance": "2.0"}`),
		keep(`{"hash_balance": null}`, `{"loadbalancing": "hash", "hash_header": "X-Tenant"}`),
		refuse(`{"hash_header": null}`, "Hash header must be present when loadbalancing is set to hash."),
		{method: "GET", path: "/v3/routes/route-1", status: 200, want: `{"options": {"loadbalancing": "hash", "hash_header": "X-Tenant"}}`},
		keep(`{"loadbalancing": "round-robin"}`, `{"loadbalancing": "round-robin"}`),
		{method: "POST", path: "/v3/routes", body: routeIn("domain-1", `"host": "n", "options": {"loadbalancing": "hash"}, `), status: 422,
			want: detail(10008, "Hash header must be present when loadbalancing is set to hash.")},
		{method: "POST", path: "/v3/routes", body: routeIn("domain-1", `"host": "n", "options": {"loadbalancing": "hash", "hash_header": "X", "hash_balance": 0}, `), status: 201,
			want: `{"options": {"loadbalancing": "hash", "hash_header": "X", "hash_balance": "0.0"}}`},
	})
}

func TestRouteOptionsInManifests(t *testing.T) {
	w := newWorld(t)
	apply := func(options string, status int, want string) {
		t.Helper()
		text := "applications:\n- name: hello\n  routes:\n  - route: hello.apps.test\n    options: " + options + "\n"
		got := w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", text, "application/x-yaml")
		if got.status != status || !strings.Contains(got.text, want) {
			t.Errorf("%s: got %d %s; want %d %s", options, got.status, got.text, status, want)
		}
		if status == 202 {
			w.saved["job"] = guidOf(got)
		}
	}
	const of = "For application 'hello': "
	apply("5", 422, of+"Route 'hello.apps.test': options must be an object")
	apply("{hash_header: X}", 422, of+"Route 'hello.apps.test' contains invalid route option 'hash_header'. Valid keys: 'loadbalancing'")
	apply("{loadbalancing: hash}", 422, of+"Cannot use loadbalancing value 'hash' for Route 'hello.apps.test'; Valid values are: 'round-robin, least-connection'")
	apply("{loadbalancing: 5}", 422, of+"Invalid value for 'loadbalancing' for Route 'hello.apps.test'; Valid values are: 'round-robin, least-connection'")
	w.run(t, []step{{method: "PATCH", path: "/v3/feature_flags/hash_based_routing", body: `{"enabled": true}`, status: 200}})
	apply("{loadbalancing: hash, hash_header: X, hash_balance: 11}", 422, of+"Route 'hello.apps.test': Hash balance must be either 0 or between 1.1 and 10.0")
	apply("{loadbalancing: least-connection, hash_header: X}", 422, of+"Route 'hello.apps.test': Hash header can only be set when loadbalancing is hash")
	apply("{loadbalancing: hash}", 202, "")
	w.run(t, []step{{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "FAILED", "errors": [{"detail": "For application 'hello': For route 'hello.apps.test': Hash header must be present when loadbalancing is set to hash."}]}`}})
	apply("{loadbalancing: hash, hash_header: X-Tenant, hash_balance: 1.5}", 202, "")
	w.run(t, []step{{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "COMPLETE"}`},
		{method: "GET", path: "/v3/routes/route-1", status: 200, want: `{"options": {"loadbalancing": "hash", "hash_header": "X-Tenant", "hash_balance": "1.5"}}`}})
}
