package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// What older clients read of the v2 API, in the form of Cloud Controller's presenters
// (CC: app/presenters/v2, app/controllers/runtime).
func TestV2Reads(t *testing.T) {
	w := newWorld(t)
	w.write(seedAccess)
	w.seedLooks()
	w.run(t, []step{
		{as: anonymous, method: "GET", path: "/v2/info", status: 200, want: `{"api_version": "2.293.0", "token_endpoint": "{url}", "authorization_endpoint": "{url}", "routing_endpoint": "{url}/routing"}`},
		{method: "GET", path: "/v2/apps?q=name:hello", status: 200, want: `{"total_results": 1, "total_pages": 1, "prev_url": null, "next_url": null, "resources": [
			{"metadata": {"guid": "app-1", "url": "/v2/apps/app-1"}, "entity": {"name": "hello", "space_guid": "space-1", "state": "STOPPED", "memory": 1024, "instances": 1, "package_state": "STAGED",
			"detected_start_command": "./run", "diego": true, "production": false, "enable_ssh": true, "ports": [8080], "space_url": "/v2/spaces/space-1", "routes_url": "/v2/apps/app-1/routes"}}]}`},
		{method: "GET", path: "/v2/apps?q=name%20IN%20hello,other&q=space_guid:space-1", status: 200, want: `{"total_results": 2}`},
		{method: "GET", path: "/v2/apps?q=name:hello;space_guid:space-2", status: 200, want: `{"total_results": 0, "total_pages": 0, "resources": []}`},
		{method: "GET", path: "/v2/apps?results-per-page=1", status: 200, want: `{"total_pages": 2, "prev_url": null, "next_url": "/v2/apps?order-direction=asc&page=2&results-per-page=1"}`},
		{method: "GET", path: "/v2/apps?results-per-page=1&page=2&order-direction=desc", status: 200,
			want: `{"prev_url": "/v2/apps?order-direction=desc&page=1&results-per-page=1", "next_url": null, "resources": [{"metadata": {"guid": "app-1"}}]}`},
		{method: "GET", path: "/v2/apps/app-1", status: 200, want: `{"metadata": {"guid": "app-1"}, "entity": {"environment_json": {}}}`},
		// The CLI's GetApp of plugins fails without (CC: rest_controller/preloaded_object_serializer.rb).
		{method: "GET", path: "/v2/spaces/space-1/apps?q=name:hello&inline-relations-depth=1", status: 200, want: `{"resources": [{"entity": {"name": "hello", "stack": {"entity": {"name": "minifs", "description": "small"}}}}]}`},
		{as: "space_auditor", method: "GET", path: "/v2/apps/app-1", status: 200, want: `{"entity": {"environment_json": {"redacted_message": "[PRIVATE DATA HIDDEN]"}}}`},
		{method: "GET", path: "/v2/apps/app-1/summary", status: 200, want: `{"guid": "app-1", "name": "hello", "running_instances": 0, "routes": [{"guid": "route-1", "host": "hello", "port": null, "path": "", "domain": {"guid": "domain-1", "name": "apps.test"}}]}`},
		{method: "GET", path: "/v2/apps/app-1/env", status: 200, want: `{"environment_json": {}, "staging_env_json": {}, "running_env_json": {}, "application_env_json": {"VCAP_APPLICATION": {"application_name": "hello"}}}`},
		{method: "GET", path: "/v2/apps/app-1/routes", status: 200, want: `{"resources": [{"metadata": {"guid": "route-1"}}]}`},
		{method: "GET", path: "/v2/routes?q=host:hello", status: 200, want: `{"total_results": 1, "resources": [{"metadata": {"guid": "route-1", "url": "/v2/routes/route-1"},
			"entity": {"host": "hello", "path": "", "domain_guid": "domain-1", "space_guid": "space-1", "service_instance_guid": "ups-1", "port": null, "domain_url": "/v2/shared_domains/domain-1", "apps_url": "/v2/routes/route-1/apps"}}]}`},
		{method: "GET", path: "/v2/routes/route-1/apps", status: 200, want: `{"resources": [{"metadata": {"guid": "app-1"}}]}`},
		{method: "GET", path: "/v2/organizations?q=name:org", status: 200, want: `{"resources": [{"metadata": {"guid": "org-1"}, "entity": {"name": "org", "status": "active", "billing_enabled": false, "spaces_url": "/v2/organizations/org-1/spaces"}}]}`},
		{method: "GET", path: "/v2/organizations/org-1/spaces", status: 200, want: `{"resources": [{"metadata": {"guid": "space-1"}}, {"metadata": {"guid": "space-3"}}]}`},
		{method: "GET", path: "/v2/spaces?q=organization_guid:org-1&q=name:dev", status: 200, want: `{"resources": [{"metadata": {"guid": "space-1"}, "entity": {"name": "dev", "organization_guid": "org-1", "allow_ssh": true, "apps_url": "/v2/spaces/space-1/apps"}}]}`},
		{method: "GET", path: "/v2/spaces/space-1/summary", status: 200, want: `{"guid": "space-1", "name": "dev", "apps": [{"guid": "app-1", "name": "hello", "urls": ["hello.apps.test"], "service_names": ["ups"], "running_instances": 0}, {"guid": "app-2"}], "services": [{"guid": "ups-1", "bound_app_count": 1}, {"guid": "db-1"}, {"guid": "db-2"}]}`},
		{method: "GET", path: "/v2/stacks?q=name:minifs", status: 200, want: `{"total_results": 1, "resources": [{"entity": {"name": "minifs", "description": "small"}}]}`},
		{method: "GET", path: "/v2/shared_domains?q=name:apps.test", status: 200, want: `{"resources": [{"metadata": {"guid": "domain-1", "url": "/v2/shared_domains/domain-1"}, "entity": {"name": "apps.test", "internal": false, "router_group_guid": null, "router_group_type": null}}]}`},
		{method: "GET", path: "/v2/private_domains?q=name:own.test", status: 200, want: `{"total_results": 1, "resources": [{"metadata": {"guid": "domain-2", "url": "/v2/private_domains/domain-2"}, "entity": {"owning_organization_guid": "org-1"}}]}`},
		{method: "GET", path: "/v2/domains/domain-2", status: 200, want: `{"entity": {"name": "own.test"}}`},
		{method: "GET", path: "/v2/user_provided_service_instances", status: 200, want: `{"resources": [{"metadata": {"guid": "ups-1", "url": "/v2/user_provided_service_instances/ups-1"}, "entity": {"type": "user_provided_service_instance", "space_guid": "space-1"}}]}`},
		{method: "GET", path: "/v2/service_instances/db-1", status: 200, want: `{"metadata": {"url": "/v2/service_instances/db-1"}, "entity": {"type": "managed_service_instance", "service_plan_url": "/v2/service_plans/plan-s", "gateway_data": null}}`},
		{method: "GET", path: "/v2/config/feature_flags/diego_docker", status: 200, want: `{"name": "diego_docker", "enabled": false, "error_message": null, "url": "/v2/config/feature_flags/diego_docker"}`},
	})
	if got := w.ask("admin", "GET", "/v2/config/feature_flags", "", ""); got.status != 200 || !strings.HasPrefix(got.text, `[{"enabled":`) {
		t.Errorf("got %d %s; want a bare list", got.status, got.text)
	}
	if got := w.ask("admin", "GET", "/v2/apps/app-1/download", "", ""); got.status != 200 || got.header.Get("Content-Type") != "application/zip" {
		t.Errorf("got %d %v; want the package", got.status, got.header)
	}
	if got := w.ask("admin", "GET", "/v2/spaces/space-1/service_instances?return_user_provided_service_instances=true", "", ""); !strings.Contains(got.text, `"ups-1"`) {
		t.Errorf("got %s; want the user-provided one, too", got.text)
	}
	if got := w.ask("admin", "GET", "/v2/apps/app-1?inline-relations-depth=0", "", ""); strings.Contains(got.text, `"stack":`) {
		t.Errorf("got %s; want no stack inlined", got.text)
	}
	if got := w.ask("admin", "GET", "/v2/spaces/space-1/service_instances", "", ""); strings.Contains(got.text, `"ups-1"`) {
		t.Errorf("got %s; want the managed ones alone", got.text)
	}
}

// What is there and may not be seen is forbidden (CC:
// ModelController.find_guid_and_validate_access): the v3 API does not find it.
func TestV2Forbids(t *testing.T) {
	w := newWorld(t)
	w.write(seedAccess)
	w.seedLooks()
	for _, path := range []string{
		"/v2/apps/app-1", "/v2/apps/app-1/summary", "/v2/apps/app-1/env", "/v2/apps/app-1/stats", "/v2/apps/app-1/instances", "/v2/apps/app-1/routes", "/v2/apps/app-1/download",
		"/v2/apps/app-1/droplet/download", "/v2/organizations/org-1", "/v2/organizations/org-1/spaces", "/v2/spaces/space-1", "/v2/spaces/space-1/apps", "/v2/spaces/space-1/routes",
		"/v2/spaces/space-1/service_instances", "/v2/spaces/space-1/summary", "/v2/routes/route-1", "/v2/routes/route-1/apps", "/v2/domains/domain-2", "/v2/private_domains/domain-2",
		"/v2/service_instances/db-1", "/v2/user_provided_service_instances/ups-1",
	} {
		got := w.ask("nobody", "GET", path, "", "")
		if want := `"error_code":"CF-NotAuthorized"`; got.status != 403 || !strings.Contains(got.text, want) {
			t.Errorf("%s: got %d %s; want 403 %s", path, got.status, got.text, want)
		}
	}
	// A private domain is no shared one, for those who may not see it either.
	for _, path := range []string{"/v2/shared_domains/domain-2", "/v2/user_provided_service_instances/db-1", "/v2/spaces/none/summary", "/v2/routes/none/apps"} {
		if got := w.ask("nobody", "GET", path, "", ""); got.status != 404 {
			t.Errorf("%s: got %d %s; want 404", path, got.status, got.text)
		}
	}
}

// Errors of the v2 API have its form (CC: errors/v2.yml, lib/cloud_controller/rest_controller).
func TestV2Errors(t *testing.T) {
	w := newWorld(t)
	w.write(seedAccess)
	for _, tt := range []struct {
		as, method, path  string
		status, code      int
		name, description string
	}{
		{"admin", "GET", "/v2/nothing", 404, 10000, "NotFound", "Unknown request"},
		{"admin", "POST", "/v2/apps", 404, 10000, "NotFound", "Unknown request"},
		{anonymous, "GET", "/v2/apps", 401, 10002, "NotAuthenticated", "Authentication error"},
		{"admin", "GET", "/v2/apps/none", 404, 100004, "AppNotFound", "The app could not be found: none"},
		{"nobody", "GET", "/v2/apps/none", 404, 100004, "AppNotFound", "The app could not be found: none"},
		{"space_auditor", "GET", "/v2/apps/app-1/env", 403, 10003, "NotAuthorized", "You are not authorized to perform the requested action"},
		{"admin", "GET", "/v2/apps/app-1/stats", 400, 200003, "AppStoppedStatsError", "Could not fetch stats for stopped app: hello"},
		{"admin", "GET", "/v2/apps/app-1/instances", 400, 220001, "InstancesError", "Instances error: Request failed for app: hello as the app is in stopped state."},
		{"admin", "GET", "/v2/apps/app-2/instances", 400, 170002, "NotStaged", "App has not finished staging"},
		{"admin", "GET", "/v2/apps/app-2/download", 404, 150002, "AppPackageNotFound", "The app package could not be found: app-2"},
		{"admin", "GET", "/v2/apps/app-2/droplet/download", 404, 10010, "ResourceNotFound", "Droplet not found for app with guid app-2"},
		{"admin", "GET", "/v2/apps?q=bogus:1", 400, 10005, "BadQueryParameter", "The query parameter is invalid: bogus"},
		{"admin", "GET", "/v2/apps?results-per-page=101", 400, 10005, "BadQueryParameter", "The query parameter is invalid: results_per_page must be <= 100"},
		{"admin", "GET", "/v2/spaces/none", 404, 40004, "SpaceNotFound", "The app space could not be found: none"},
		{"admin", "GET", "/v2/spaces/none/apps", 404, 40004, "SpaceNotFound", "The app space could not be found: none"},
		{"admin", "GET", "/v2/organizations/none", 404, 30003, "OrganizationNotFound", "The organization could not be found: none"},
		{"admin", "GET", "/v2/routes/none", 404, 210002, "RouteNotFound", "The route could not be found: none"},
		{"admin", "GET", "/v2/stacks/none", 404, 250003, "StackNotFound", "The stack could not be found: none"},
		{"admin", "GET", "/v2/shared_domains/domain-2", 404, 130002, "DomainNotFound", "The domain could not be found: domain-2"},
		{"admin", "GET", "/v2/user_provided_service_instances/db-1", 404, 60004, "ServiceInstanceNotFound", "The service instance could not be found: db-1"},
		{"admin", "GET", "/v2/config/feature_flags/none", 404, 330000, "FeatureFlagNotFound", "The feature flag could not be found: none"},
	} {
		got := w.ask(tt.as, tt.method, tt.path, "", "")
		want := map[string]any{"description": tt.description, "error_code": "CF-" + tt.name, "code": float64(tt.code)}
		var body map[string]any
		if err := json.Unmarshal([]byte(got.text), &body); err != nil || got.status != tt.status || fmt.Sprint(body) != fmt.Sprint(want) {
			t.Errorf("%s %s: got %d %s; want %d %v", tt.method, tt.path, got.status, got.text, tt.status, want)
		}
	}
}
