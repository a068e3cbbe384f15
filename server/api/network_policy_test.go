package api

import (
	"fmt"
	"strings"
	"testing"

	"cupola/server/control/policies"
	"cupola/store"
	"cupola/store/cf"
)

func TestNetworkPolicies(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		if err := seedApp(tx, "app-2", "other"); err != nil {
			return err
		}
		return store.Spaces.Insert(tx, &cf.Space{Resource: guid("space-9"), Name: "nine", OrgGUID: "org-1"})
	})
	const path = "/networking/v1/external/policies"
	policy := func(source, destination, protocol string, start, end int) string {
		return fmt.Sprintf(`{"policies": [{"source": {"id": %q}, "destination": {"id": %q, "protocol": %q, "ports": {"start": %d, "end": %d}}}]}`, source, destination, protocol, start, end)
	}
	good := policy("app-1", "app-2", "tcp", 8080, 8090)
	deny := `{"error": "one or more applications cannot be found or accessed"}`
	w.run(t, []step{
		{method: "GET", path: "/", status: 200, want: `{"links": {"network_policy_v1": {"href": "{url}/networking/v1/external"}}}`},
		{as: "space_developer", method: "POST", path: path, body: good, status: 200, want: `{}`},
		{as: "space_developer", method: "POST", path: path, body: good, status: 200},
		{as: "space_developer", method: "GET", path: path, status: 200,
			want: `{"total_policies": 1, "policies": [{"source": {"id": "app-1"}, "destination": {"id": "app-2", "protocol": "tcp", "ports": {"start": 8080, "end": 8090}}}]}`},
		{as: "space_developer", method: "GET", path: path + "?id=app-2,x", status: 200, want: `{"total_policies": 1}`},
		{as: "space_developer", method: "GET", path: path + "?id=x", status: 200, want: `{"total_policies": 0, "policies": []}`},
		{as: "space_developer", method: "GET", path: path + "?source_id=app-2", status: 200, want: `{"total_policies": 0}`},
		{as: "space_developer", method: "GET", path: path + "?source_id=app-1&dest_id=app-2", status: 200, want: `{"total_policies": 1}`},
		{as: "space_developer", method: "GET", path: path + "?dest_id=app-1", status: 200, want: `{"total_policies": 0}`},
		{as: "space_manager", method: "GET", path: path, status: 200, want: `{"total_policies": 0}`},
		{as: "nobody", method: "POST", path: path, body: good, status: 403, want: deny},
		{as: "space_supporter", method: "POST", path: path + "/delete", body: good, status: 403, want: deny},
		{method: "POST", path: path, body: policy("app-1", "gone", "udp", 1, 1), status: 403, want: deny},
		{as: "space_developer", method: "POST", path: path + "/delete", body: policy("app-1", "gone", "udp", 1, 1), status: 200},
		{as: "space_developer", method: "POST", path: path + "/delete", body: policy("app-1", "app-2", "tcp", 8080, 8080), status: 200},
		{as: "space_developer", method: "GET", path: path, status: 200, want: `{"total_policies": 1}`},
		{as: "space_developer", method: "POST", path: path + "/delete", body: good, status: 200, want: `{}`},
		{as: "space_developer", method: "GET", path: path, status: 200, want: `{"total_policies": 0}`},
	})
	for body, want := range map[string]string{
		`{}`:                                      "missing policies",
		policy("", "app-2", "tcp", 1, 1):          "missing source id",
		policy("app-1", "", "tcp", 1, 1):          "missing destination id",
		policy("app-1", "app-2", "icmp", 1, 1):    "invalid destination protocol, specify either udp or tcp",
		policy("app-1", "app-2", "tcp", 9, 8):     "invalid port range 9-8, start must be less than or equal to end",
		policy("app-1", "app-2", "tcp", -1, 8):    "invalid start port -1, must be in range 1-65535",
		policy("app-1", "app-2", "tcp", 0, 8):     "missing start port",
		policy("app-1", "app-2", "tcp", 1, 65536): "invalid end port 65536, must be in range 1-65535",
		`{"policies": [{"source": {"id": "a", "tag": "1"}, "destination": {"id": "b", "protocol": "tcp", "ports": {"start": 1, "end": 1}}}]}`: "tags may not be specified",
	} {
		w.run(t, []step{{method: "POST", path: path, body: body, status: 400, want: fmt.Sprintf(`{"error": "mapper: validate policies: %s"}`, want)}})
	}
	for body, want := range map[string]string{
		"[":                                   "mapper: unmarshal json: unexpected end of JSON input",
		`{"policies": {}}`:                    "mapper: unmarshal json: policies must be an array",
		`{"policies": [{"source": "app-1"}]}`: "mapper: unmarshal json: policies.source must be an object",
	} {
		got := w.ask("space_developer", "POST", path, body, "")
		if got.status != 400 || !strings.Contains(got.text, `{"error":"`+want) {
			t.Errorf("%s: got %d %s; want %s", body, got.status, got.text, want)
		}
	}
}

func TestNetworkPoliciesAreBounded(t *testing.T) {
	w := newWorld(t)
	var many []string
	for port := range policies.MaxPolicies {
		many = append(many, fmt.Sprintf(`{"source": {"id": "app-1"}, "destination": {"id": "app-1", "protocol": "tcp", "ports": {"start": %d, "end": 60000}}}`, port+1))
	}
	full, one := `{"policies": [`+strings.Join(many, ",")+`]}`, `{"policies": [`+many[0]+`]}`
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/networking/v1/external/policies", body: full, status: 200},
		{as: "space_developer", method: "POST", path: "/networking/v1/external/policies", body: one, status: 403, want: `{"error": "policy quota exceeded"}`},
		{method: "POST", path: "/networking/v1/external/policies", body: one, status: 200},
		{method: "DELETE", path: "/v3/apps/app-1", status: 202},
		{method: "GET", path: "/networking/v1/external/policies", status: 200, want: `{"total_policies": 0}`},
	})
}

func TestInternalRoutes(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		return store.Domains.Insert(tx, &cf.Domain{Resource: guid("inside"), Name: "apps.internal", Internal: true})
	})
	route := func(rest string) string {
		return `{` + rest + `, "relationships": {"space": {"data": {"guid": "space-1"}}, "domain": {"data": {"guid": "inside"}}}}`
	}
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/v3/routes", body: route(`"host": "x"`), status: 201, want: `{"url": "x.apps.internal"}`},
		{method: "POST", path: "/v3/routes", body: route(`"host": "*"`), status: 422, want: detail(10008, "Wildcard hosts are not supported for internal domains.")},
		{method: "POST", path: "/v3/routes", body: route(`"host": "x", "path": "/y"`), status: 422, want: detail(10008, "Paths are not supported for internal domains.")},
	})
}
