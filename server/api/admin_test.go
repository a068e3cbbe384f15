package api

import (
	"errors"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

func TestFeatureFlags(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		return store.Resources.Remember(tx, strings.Repeat("a", 40), 70000, store.Resource{Digest: "d"})
	})
	knownFile := `{"resources": [{"path": "a", "mode": "644", "checksum": {"value": "` + strings.Repeat("a", 40) + `"}, "size_in_bytes": 70000}, {"path": "b", "checksum": {"value": "` + strings.Repeat("a", 40) + `"}, "size_in_bytes": 1}]}`
	route := `{"host": "x", "relationships": {"space": {"data": {"guid": "space-1"}}, "domain": {"data": {"guid": "domain-1"}}}}`
	w.run(t, []step{
		{method: "GET", path: "/v3/feature_flags?per_page=2&page=2", status: 200, want: `{"pagination": {"total_results": 20, "total_pages": 10}, "resources": [{"name": "diego_cnb", "enabled": false, "custom_error_message": null}, {"name": "diego_custom_stacks"}]}`},
		{as: "nobody", method: "GET", path: "/v3/feature_flags/route_creation", status: 200, want: `{"enabled": true, "links": {"self": {"href": "{url}/v3/feature_flags/route_creation"}}}`},
		{method: "GET", path: "/v3/feature_flags/none", status: 404, want: detail(10010, "Feature flag not found")},
		{as: "org_manager", method: "PATCH", path: "/v3/feature_flags/route_creation", body: `{"enabled": false}`, status: 403},
		{method: "PATCH", path: "/v3/feature_flags/route_creation", body: `{"enabled": null}`, status: 422, want: detail(10008, "Enabled must be a boolean")},
		{method: "PATCH", path: "/v3/feature_flags/route_creation", body: `{"enabled": false, "custom_error_message": "no more"}`, status: 200, want: `{"enabled": false, "custom_error_message": "no more"}`},
		{as: "space_developer", method: "POST", path: "/v3/routes", body: route, status: 403, want: detail(330002, "Feature Disabled: no more")},
		{method: "POST", path: "/v3/routes", body: route, status: 201},
		{method: "PATCH", path: "/v3/feature_flags/env_var_visibility", body: `{"enabled": false}`, status: 200},
		{method: "GET", path: "/v3/apps/app-1/env", status: 403, want: detail(330002, "Feature Disabled: env_var_visibility")},
		{method: "PATCH", path: "/v3/feature_flags/env_var_visibility", body: `{"enabled": true}`, status: 200},
		{method: "PATCH", path: "/v3/feature_flags/space_developer_env_var_visibility", body: `{"enabled": false}`, status: 200},
		{as: "space_developer", method: "GET", path: "/v3/apps/app-1/environment_variables", status: 403},
		{as: "read_only_admin", method: "GET", path: "/v3/apps/app-1/environment_variables", status: 200},
		{method: "PATCH", path: "/v3/feature_flags/app_scaling", body: `{"enabled": false}`, status: 200},
		{as: "space_developer", method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 2}`, status: 403, want: detail(330002, "Feature Disabled: app_scaling")},
		{method: "POST", path: "/v3/resource_matches", body: knownFile, status: 201, want: `{"resources": [{"path": "a"}]}`},
		{method: "PATCH", path: "/v3/feature_flags/resource_matching", body: `{"enabled": false}`, status: 200},
		{method: "POST", path: "/v3/resource_matches", body: knownFile, status: 201, want: `{"resources": []}`},
		{method: "PATCH", path: "/v3/feature_flags/set_roles_by_username", body: `{"enabled": false}`, status: 200},
		{as: "org_manager", method: "POST", path: "/v3/roles", body: orgRole("organization_auditor", `{"username": "org_user"}`), status: 403},
		{as: "org_manager", method: "POST", path: "/v3/roles", body: orgRole("organization_auditor", `{"guid": "user-org_user"}`), status: 201},
		{method: "PATCH", path: "/v3/feature_flags/private_domain_creation", body: `{"enabled": false}`, status: 200},
		{as: "org_manager", method: "POST", path: "/v3/domains", body: `{"name": "a.b", "relationships": {"organization": {"data": {"guid": "org-1"}}}}`, status: 403},
	})
}

func TestStacks(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "GET", path: "/v3/stacks?default=true", status: 200, want: `{"resources": [{"name": "minifs", "description": "small", "state": "ACTIVE", "state_reason": null, "default": true, "build_rootfs_image": "minifs"}]}`},
		{method: "POST", path: "/v3/stacks", body: `{"name": "new", "state": "DEPRECATED", "state_reason": "old"}`, status: 201, save: "new", want: `{"state": "DEPRECATED", "default": false}`},
		{method: "POST", path: "/v3/stacks", body: `{"name": "new"}`, status: 422, want: detail(10008, "Name must be unique")},
		{method: "POST", path: "/v3/stacks", body: `{"description": "x"}`, status: 422, want: detail(10008, "Name can't be blank")},
		{method: "PATCH", path: "/v3/stacks/{new}", body: `{"state": "GONE"}`, status: 422, want: detail(10008, "State must be one of ACTIVE, RESTRICTED, DEPRECATED, DISABLED")},
		{method: "PATCH", path: "/v3/stacks/{new}", body: `{"state": "DISABLED", "state_reason": null, "metadata": {"labels": {"a": "b"}}}`, status: 200, want: `{"state": "DISABLED", "state_reason": null, "metadata": {"labels": {"a": "b"}}}`},
		{as: "org_manager", method: "PATCH", path: "/v3/stacks/{new}", body: `{"state": "ACTIVE"}`, status: 403},
		{method: "DELETE", path: "/v3/stacks/{new}", status: 204},
		{method: "GET", path: "/v3/stacks/{new}", status: 404, want: detail(10010, "Stack not found")},
		{method: "POST", path: "/v3/stacks", body: `{"name": "busy"}`, status: 201, save: "busy"},
		{method: "DELETE", path: "/v3/stacks/{busy}", status: 422, want: detail(10008, "Cannot delete stack 'busy' because it is used through the BBS API: LRP web, task sum.")},
		{method: "GET", path: "/v3/stacks/{busy}", status: 200},
	})
	w.saved["host"] = firstGUID(t, w.ask("admin", "GET", "/v3/stacks?names=host", "", ""))
	w.run(t, []step{{method: "DELETE", path: "/v3/stacks/{host}", status: 422, want: detail(10008, "Cannot delete stack 'host': it is part of cupola.")}})
	w.saved["minifs"] = firstGUID(t, w.ask("admin", "GET", "/v3/stacks?names=minifs", "", ""))
	w.run(t, []step{
		{as: "space_developer", method: "GET", path: "/v3/stacks/{minifs}/apps", status: 200, want: `{"resources": [{"name": "hello"}]}`},
		{method: "DELETE", path: "/v3/stacks/{minifs}", status: 422, want: detail(10008, "Cannot delete stack 'minifs' because apps are currently using the stack.")},
	})
	got := w.ask("admin", "PATCH", w.fill("/v3/stacks/{minifs}"), `{"state": "DEPRECATED"}`, "")
	if want := "Changing+state+on+the+default+stack+%27minifs%27+may+affect+new+application+deployments."; got.header.Get("X-Cf-Warnings") != want {
		t.Errorf("got the warning %s; want %s", got.header.Get("X-Cf-Warnings"), want)
	}
}

// firstGUID is the GUID of the first row of a list.
func firstGUID(t *testing.T, a answer) string {
	t.Helper()
	list, ok := a.json.(map[string]any)["resources"].([]any)
	if !ok || len(list) == 0 {
		t.Fatalf("got %s; want a row", a.text)
	}
	return list[0].(map[string]any)["guid"].(string)
}

func TestOrgQuotas(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "GET", path: "/v3/organization_quotas", status: 200, want: `{"resources": [{"name": "default", "apps": {"total_memory_in_mb": 102400, "total_instances": null}, "routes": {"total_routes": 1000, "total_reserved_ports": 100},
			"services": {"paid_services_allowed": true}, "relationships": {"organizations": {"data": [{"guid": "org-1"}]}}}]}`},
		{method: "POST", path: "/v3/organization_quotas", body: `{"name": 7}`, status: 422, want: detail(10008, "Name must be a string")},
		{method: "POST", path: "/v3/organization_quotas", body: `{"name": "q", "apps": {"total_memory_in_mb": 2048, "per_process_memory_in_mb": 1024, "total_instances": 2, "per_app_tasks": 1}, "routes": {"total_routes": 2}}`, status: 201, save: "q",
			want: `{"apps": {"total_memory_in_mb": 2048, "log_rate_limit_in_bytes_per_second": null}, "domains": {"total_domains": null}}`},
		{method: "POST", path: "/v3/organization_quotas", body: `{"name": "q"}`, status: 422, want: detail(10008, "Organization Quota 'q' already exists.")},
		{method: "POST", path: "/v3/organization_quotas", body: `{"apps": {"total_instances": -2}}`, status: 422},
		{method: "POST", path: "/v3/organization_quotas/{q}/relationships/organizations", body: `{"data": [{"guid": "none"}]}`, status: 422, want: detail(10008, `Organizations with guids ["none"] do not exist`)},
		{method: "POST", path: "/v3/organization_quotas/{q}/relationships/organizations", body: `{"data": [{"guid": "org-1"}]}`, status: 200, want: `{"data": [{"guid": "org-1"}]}`},
		{method: "DELETE", path: "/v3/organization_quotas/{q}", status: 422, want: detail(10008, "This quota is applied to one or more organizations. Apply different quotas to those organizations before deleting.")},
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 3}`, status: 422, want: detail(10008, "memory quota_exceeded, app_instance_limit app_instance_limit_exceeded")},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"memory_in_mb": 1500}`, status: 422, want: detail(10008, "memory instance_memory_limit_exceeded")},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 2}`, status: 202},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x"}`, status: 422, want: detail(10008, "memory_in_mb exceeds organization memory quota")},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"memory_in_mb": 64}`, status: 202},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x", "memory_in_mb": 10}`, status: 202},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x", "memory_in_mb": 10}`, status: 422, want: detail(10008, "app_task_limit quota exceeded")},
		{method: "GET", path: "/v3/organizations/org-1/usage_summary", status: 200, want: `{"usage_summary": {"started_instances": 2, "memory_in_mb": 138, "routes": 1, "per_app_tasks": 1, "domains": 0, "service_instances": 0}}`},
		{method: "GET", path: "/v3/info/usage_summary", status: 200, want: `{"usage_summary": {"memory_in_mb": 138}}`},
		{as: "org_manager", method: "GET", path: "/v3/info/usage_summary", status: 404, want: detail(10000, "Unknown request")},
		{method: "POST", path: "/v3/routes", body: `{"host": "a", "relationships": {"space": {"data": {"guid": "space-1"}}, "domain": {"data": {"guid": "domain-1"}}}}`, status: 201},
		{method: "POST", path: "/v3/routes", body: `{"host": "b", "relationships": {"space": {"data": {"guid": "space-1"}}, "domain": {"data": {"guid": "domain-1"}}}}`, status: 422, want: detail(10008, "Routes quota exceeded for organization 'org'.")},
		{method: "PATCH", path: "/v3/organization_quotas/{q}", body: `{"name": "q", "apps": {"total_instances": null}, "services": {}, "routes": {}}`, status: 200, want: `{"apps": {"total_instances": null, "total_memory_in_mb": 2048}, "routes": {"total_routes": 2}}`},
		{as: "org_manager", method: "PATCH", path: "/v3/organization_quotas/{q}", body: `{}`, status: 403},
		{as: "nobody", method: "GET", path: "/v3/organization_quotas/{q}", status: 200, want: `{"relationships": {"organizations": {"data": []}}}`},
	})
}

func TestStackStates(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		for _, state := range []string{"DEPRECATED", "RESTRICTED", "DISABLED"} {
			if err := store.Stacks.Insert(tx, &cf.Stack{Name: state, State: state, StateReason: "Old."}); err != nil {
				return err
			}
		}
		return store.Stacks.Insert(tx, &cf.Stack{Name: "future", State: "ACTIVE"})
	})
	refused := func(state string) string {
		return "ERROR: Staging failed. The stack '" + state + "' is '" + state + "' and cannot be used for staging. Old."
	}
	onStack := func(name, stack string) string {
		return `{"name": "` + name + `", "lifecycle": {"type": "buildpack", "data": {"stack": "` + stack + `"}}, ` + toSpace + `}`
	}
	change := func(stack string) string {
		return `{"lifecycle": {"type": "buildpack", "data": {"stack": "` + stack + `"}}}`
	}
	w.run(t, []step{
		{method: "POST", path: "/v3/apps", body: onStack("a", "DISABLED"), status: 422, want: detail(10008, refused("DISABLED"))},
		{method: "POST", path: "/v3/apps", body: onStack("a", "RESTRICTED"), status: 422, want: detail(10008, refused("RESTRICTED"))},
		{method: "POST", path: "/v3/apps", body: onStack("a", "DEPRECATED"), status: 201},
		{method: "PATCH", path: "/v3/apps/app-1", body: change("DISABLED"), status: 422, want: detail(10008, refused("DISABLED"))},
		{method: "PATCH", path: "/v3/apps/app-1", body: change("RESTRICTED"), status: 200},
		{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-1"}, "lifecycle": {"type": "buildpack", "data": {"stack": "DISABLED"}}}`, status: 422, want: detail(250004, refused("DISABLED"))},
	})
	got := w.ask("admin", "POST", "/v3/builds", `{"package": {"guid": "package-1"}}`, "")
	if want := "WARNING%3A+The+stack+%27RESTRICTED%27+is+%27RESTRICTED%27+and+will+be+removed+in+the+future.+Old."; got.status != 201 || got.header.Get("X-Cf-Warnings") != want {
		t.Errorf("got %d and the warning %s; want %s", got.status, got.header.Get("X-Cf-Warnings"), want)
	}
	w.write(func(tx *store.Tx) error { // an app has one build under way
		builds, err := store.Builds.All(tx)
		for _, b := range builds {
			b.State = cf.BuildFailed
			err = errors.Join(err, store.Builds.Update(tx, b))
		}
		return err
	})
	got = w.ask("admin", "POST", "/v3/builds", `{"package": {"guid": "package-1"}, "lifecycle": {"type": "buildpack", "data": {"stack": "future"}}}`, "")
	if want := "WARNING%3A+The+stack+%27future%27+may+not+work+here%3A+it+wants+another+kernel"; got.status != 201 || got.header.Get("X-Cf-Warnings") != want {
		t.Errorf("got %d and the warning %s; want %s", got.status, got.header.Get("X-Cf-Warnings"), want)
	}
}
