package api

import (
	"fmt"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// Router groups are made, changed and deleted as the routing API has it
// (routing-api: handlers/router_groups_handler.go, models/router_groups.go).
func TestRouterGroups(t *testing.T) {
	w := newWorld(t)
	const groups = "/routing/v1/router_groups"
	w.run(t, []step{
		{method: "POST", path: groups, body: `{"name": "more", "type": "tcp", "reservable_ports": "2000-2002,3000"}`, status: 201, save: "more",
			want: `{"name": "more", "type": "tcp", "reservable_ports": "2000-2002,3000"}`},
		{method: "POST", path: groups, body: `{"name": "more", "type": "tcp", "reservable_ports": "1"}`, status: 200, want: `{"guid": "{more}", "reservable_ports": "2000-2002,3000"}`},
		{method: "POST", path: groups, body: `{"name": "web", "type": "http"}`, status: 201, save: "web", want: `{"reservable_ports": ""}`},
		{method: "GET", path: groups, status: 200, want: `[{"name": "default-tcp"}, {"name": "more"}, {"name": "web"}]`},
		{method: "GET", path: groups + "?name=more", status: 200, want: `[{"guid": "{more}", "name": "more"}]`},
		{method: "POST", path: "/v3/domains", body: `{"name": "more.test", "router_group": {"guid": "{more}"}}`, status: 201, save: "domain", want: `{"supported_protocols": ["tcp"], "router_group": {"guid": "{more}"}}`},
		{method: "POST", path: "/v3/domains", body: `{"name": "web.test", "router_group": {"guid": "{web}"}}`, status: 422,
			want: detail(10008, "Router group with guid '{web}' is of type 'http'. Domains for HTTP routes need no router group.")},
		{method: "POST", path: "/v3/routes", body: routeIn("{domain}", `"port": 1024, `), status: 422, want: detail(10008, "Port '1024' is not available. Try a different port or use a different domain.")},
		{method: "POST", path: "/v3/routes", body: routeIn("{domain}", `"port": 3000, `), status: 201, want: `{"port": 3000, "url": "more.test:3000"}`},
		{method: "PUT", path: groups + "/{more}", body: `{"reservable_ports": "2001"}`, status: 200, want: `{"name": "more", "reservable_ports": "2001"}`},
		{method: "POST", path: "/v3/routes", body: routeIn("{domain}", ""), status: 201, want: `{"port": 2001}`},
		{method: "POST", path: "/v3/routes", body: routeIn("{domain}", ""), status: 422, want: detail(10008, "There are no more ports available for this domain.")},
		{method: "DELETE", path: groups + "/{more}", status: 204},
		{method: "DELETE", path: groups + "/{more}", status: 404},
		{method: "POST", path: "/v3/routes", body: routeIn("{domain}", `"port": 2001, `), status: 422,
			want: detail(10008, "Route could not be created because the specified domain does not have a valid router group.")},
	})
	got := w.ask("admin", "PUT", groups+"/"+cf.DefaultTCPGUID, `{"reservable_ports": "1024-1027"}`, "")
	if got.status != 200 || !strings.HasPrefix(got.header.Get("X-Cf-Warnings"), "Warning%3A+if+routes+are+registered+for+ports") {
		t.Errorf("got %d, warnings %q", got.status, got.header.Get("X-Cf-Warnings"))
	}
}

func TestRefusedRouterGroups(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		return store.RouterGroups.Insert(tx, &cf.RouterGroup{Resource: guid("g"), Name: "taken", Type: "tcp", Ports: "5000"})
	})
	refused := func(method, path, body string, status int, name, text string) {
		t.Helper()
		want := fmt.Sprintf(`{"name": %q, "message": %q}`, name, text)
		w.run(t, []step{{method: method, path: "/routing/v1/router_groups" + path, body: body, status: status, want: want}})
	}
	for ports, text := range map[string]string{
		"":                    "missing reservable_ports in router group: g",
		"80":                  "port must be between 1024 and 65535",
		"x":                   "port must be between 1024 and 65535",
		"70000":               "port must be between 1024 and 65535",
		"-2000":               "range (-2000) requires a starting port",
		"2000-":               "range (2000-) requires an ending port",
		"2000-1999":           "range (2000-1999) must be in ascending numeric order",
		"2000-2001-2002":      "range (2000-2001-2002) has too many '-' separators",
		"2000-2010,2010":      "Overlapping values: [2000-2010] and 2010",
		"1024,2000-2010,1024": "Overlapping values: 1024 and 1024",
	} {
		refused("POST", "", fmt.Sprintf(`{"name": "g", "type": "tcp", "reservable_ports": %q}`, ports), 400, "ProcessRequestError", "Cannot process request: "+text)
	}
	for body, text := range map[string]string{
		`{"type": "tcp", "reservable_ports": "2000"}`:               "missing name in router group",
		`{"name": "g", "reservable_ports": "2000"}`:                 "missing type in router group",
		`{"name": "g", "type": "http", "reservable_ports": "2000"}`: "reservable ports are not supported for router groups of type http",
		`{"name": "g", "type": "udp", "reservable_ports": "2000"}`:  `the type of router group g is "udp": give tcp or http`,
		`{"name": "taken", "type": "http"}`:                         "a router group named taken exists",
		`{"name": "default-tcp", "type": "http"}`:                   "a router group named default-tcp exists",
		`{"name": "g", "type": "tcp", "reservable_ports": 2000}`:    "reservable_ports must be a string",
		`{`: "the body is not JSON",
	} {
		refused("POST", "", body, 400, "ProcessRequestError", "Cannot process request: "+text)
	}
	refused("PUT", "/none", `{"reservable_ports": "2000"}`, 404, "ResourceNotFoundError", "router group 'none' does not exist")
	refused("PUT", "/"+cf.DefaultTCPGUID, `{"reservable_ports": "2000"}`, 400, "ProcessRequestError", "Cannot process request: the ports of default-tcp are those of cupola serve --tcp")
	refused("DELETE", "/"+cf.DefaultTCPGUID, "", 400, "ProcessRequestError", "Cannot process request: default-tcp exists as long as cupola serve --tcp has ports")
	got := w.ask("space_developer", "POST", "/routing/v1/router_groups", `{"name": "g", "type": "tcp", "reservable_ports": "2000"}`, "")
	if got.status != 401 || got.text != `{"message":"You are not authorized to perform the requested action","name":"UnauthorizedError"}` {
		t.Errorf("got %d %s", got.status, got.text)
	}
}
