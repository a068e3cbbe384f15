package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/store"
	"cupola/store/cf"
)

func TestAppFeatures(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{as: "space_auditor", method: "GET", path: "/v3/apps/app-1/features", status: 200, want: `{"resources": [{"name": "ssh", "enabled": true}, {"name": "revisions", "description": "Enable versioning of an application"},
			{"name": "service-binding-k8s", "enabled": false}, {"name": "file-based-vcap-services"}, {"name": "file-based-servicebinding-io"}], "pagination": {"total_results": 5, "next": null}}`},
		{method: "GET", path: "/v3/apps/app-1/features/none", status: 404, want: detail(10010, "Feature not found")},
		{method: "PATCH", path: "/v3/apps/app-1/features/ssh", body: `{"enabled": false}`, status: 200, want: `{"name": "ssh", "description": "Enable SSHing into the app.", "enabled": false}`},
		{method: "PATCH", path: "/v3/apps/app-1/features/ssh", body: `{}`, status: 422, want: detail(10008, "Enabled must be a boolean")},
		{as: "space_auditor", method: "PATCH", path: "/v3/apps/app-1/features/ssh", body: `{"enabled": true}`, status: 403},
		{as: "space_developer", method: "PATCH", path: "/v3/apps/app-1/features/file-based-vcap-services", body: `{"enabled": true}`, status: 200, want: `{"enabled": true}`},
		{method: "PATCH", path: "/v3/apps/app-1/features/service-binding-k8s", body: `{"enabled": false}`, status: 200, want: `{"enabled": false}`},
		{method: "PATCH", path: "/v3/apps/app-1/features/service-binding-k8s", body: `{"enabled": true}`, status: 422,
			want: detail(10008, "'file-based-vcap-services' and 'service-binding-k8s' features cannot be enabled at the same time.")},
		{method: "PATCH", path: "/v3/apps/app-1/features/file-based-vcap-services", body: `{"enabled": false}`, status: 200, want: `{"enabled": false}`},
		{method: "PATCH", path: "/v3/apps/app-1/features/file-based-servicebinding-io", body: `{"enabled": true}`, status: 200, want: `{"enabled": true}`},
		{method: "GET", path: "/v3/apps/app-1/ssh_enabled", status: 200, want: `{"enabled": false, "reason": "ssh is disabled globally"}`},
		{as: "space_developer", method: "GET", path: "/v3/apps/app-1/permissions", status: 200, want: `{"read_basic_data": true, "read_sensitive_data": true}`},
		{as: "space_auditor", method: "GET", path: "/v3/apps/app-1/permissions", status: 200, want: `{"read_basic_data": true, "read_sensitive_data": false}`},
		{method: "GET", path: "/v3/spaces/space-1/features/ssh", status: 200, want: `{"name": "ssh", "enabled": true}`},
		{as: "space_manager", method: "PATCH", path: "/v3/spaces/space-1/features/ssh", body: `{"enabled": false}`, status: 200, want: `{"enabled": false}`},
		{method: "GET", path: "/v3/spaces/space-1/features", status: 200, want: `{"resources": [{"name": "ssh", "enabled": false}]}`},
		{method: "GET", path: "/v3/spaces/space-1/features/x", status: 404},
	})
}

func TestInstancesAreRetired(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "DELETE", path: "/v3/apps/app-1/processes/web/instances/0", status: 204},
		{as: "space_supporter", method: "DELETE", path: "/v3/processes/app-1/instances/0", status: 204},
		{method: "DELETE", path: "/v3/processes/app-1/instances/1", status: 404, want: detail(10010, "Instance not found")},
		{method: "DELETE", path: "/v3/apps/app-1/processes/none/instances/0", status: 404, want: detail(10010, "Process not found")},
		{as: "space_auditor", method: "DELETE", path: "/v3/processes/app-1/instances/0", status: 403},
	})
	if d := cmp.Diff([]string{"app-1/0", "app-1/0"}, w.retired); d != "" {
		t.Error(d)
	}
}

func TestBuildCachesAreCleared(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		if err := store.BuildCaches.Set(tx, "app-1", "minifs", "d1"); err != nil {
			return err
		}
		if err := seedApp(tx, "app-2", "other"); err != nil {
			return err
		}
		return store.BuildCaches.Set(tx, "app-2", "minifs", "d2")
	})
	caches := func() (left []string) {
		w.write(func(tx *store.Tx) (err error) { left, err = store.BuildCaches.Digests(tx); return err })
		return left
	}
	w.run(t, []step{{as: "space_supporter", method: "POST", path: "/v3/apps/app-1/actions/clear_buildpack_cache", status: 202}})
	if d := cmp.Diff([]string{"d2"}, caches()); d != "" {
		t.Error(d)
	}
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/v3/admin/actions/clear_buildpack_cache", status: 403},
		{method: "POST", path: "/v3/admin/actions/clear_buildpack_cache", status: 202, save: "job"},
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "COMPLETE"}`},
	})
	if left := caches(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestSidecars(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "GET", path: "/v3/processes/app-1/sidecars", status: 200, want: `{"resources": [], "pagination": {"total_results": 0}}`},
		{method: "POST", path: "/v3/apps/app-1/sidecars", body: `{"name": "s", "command": "./s", "process_types": ["web"], "memory_in_mb": 100}`, status: 201, save: "s",
			want: `{"name": "s", "command": "./s", "process_types": ["web"], "memory_in_mb": 100, "origin": "user", "relationships": {"app": {"data": {"guid": "app-1"}}}}`},
		{method: "POST", path: "/v3/apps/app-1/sidecars", body: `{"name": "s", "command": "./s", "process_types": ["web"]}`, status: 422, want: detail(10008, "Sidecar with name 's' already exists for given app")},
		{method: "POST", path: "/v3/apps/app-1/sidecars", body: `{"name": "t", "command": "./s", "process_types": ["web"], "memory_in_mb": 924}`, status: 422,
			want: detail(10008, `The memory allocation defined is too large to run with the dependent "web" process`)},
		{method: "POST", path: "/v3/apps/app-1/sidecars", body: `{"name": "t", "command": "./s"}`, status: 422, want: detail(10008, "Process types must be an array, Process types must have at least 1 process_type")},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"memory_in_mb": 100}`, status: 422, want: detail(10008, "The requested memory allocation is not large enough to run all of your sidecar processes")},
		{method: "PATCH", path: "/v3/sidecars/{s}", body: `{"command": "./other"}`, status: 200, want: `{"name": "s", "command": "./other"}`},
		{as: "space_auditor", method: "GET", path: "/v3/sidecars/{s}", status: 200, want: `{"command": "./other"}`},
		{as: "nobody", method: "GET", path: "/v3/sidecars/{s}", status: 404, want: detail(10010, "Sidecar not found")},
		{method: "GET", path: "/v3/apps/app-1/sidecars", status: 200, want: `{"resources": [{"name": "s"}]}`},
		{method: "DELETE", path: "/v3/sidecars/{s}", status: 204},
		{method: "GET", path: "/v3/sidecars/{s}", status: 404},
	})
}

// The app's processes have the sidecars that its droplet declares, those of the
// droplet before no longer (CC: sidecar_synchronize_from_app_droplet.rb).
func TestBuildpackSidecars(t *testing.T) {
	w := newWorld(t)
	declare := func(sidecars ...cf.Sidecar) {
		w.write(func(tx *store.Tx) error {
			d, err := store.Droplets.Get(tx, "droplet-1")
			if err != nil {
				return err
			}
			d.Sidecars, d.ProcessTypes["worker"] = sidecars, "./work"
			return store.Droplets.Update(tx, d)
		})
	}
	const current = "/v3/apps/app-1/relationships/current_droplet"
	declare(cf.Sidecar{Name: "agent", Command: "./agent", ProcessTypes: []string{"web", "worker"}, MemoryMB: 16, Origin: "buildpack"})
	w.run(t, []step{
		{method: "PATCH", path: current, body: `{"data": {"guid": "droplet-1"}}`, status: 200},
		{method: "GET", path: "/v3/apps/app-1/sidecars", status: 200, want: `{"pagination": {"total_results": 1}, "resources": [
			{"name": "agent", "command": "./agent", "process_types": ["web", "worker"], "memory_in_mb": 16, "origin": "buildpack"}]}`},
		{method: "GET", path: "/v3/processes/app-1/sidecars", status: 200, want: `{"resources": [{"name": "agent", "origin": "buildpack"}]}`},
	})
	w.saved["agent"] = firstGUID(t, w.ask("admin", "GET", "/v3/apps/app-1/sidecars", "", ""))
	w.run(t, []step{
		{method: "PATCH", path: "/v3/sidecars/{agent}", body: `{"command": "./other"}`, status: 200, want: `{"command": "./other", "origin": "buildpack"}`},
		{method: "POST", path: "/v3/apps/app-1/sidecars", body: `{"name": "mine", "command": "./m", "process_types": ["web"]}`, status: 201},
	})
	declare(cf.Sidecar{Name: "next", Command: "./next", ProcessTypes: []string{"web"}, Origin: "buildpack"})
	w.run(t, []step{
		{method: "PATCH", path: current, body: `{"data": {"guid": "droplet-1"}}`, status: 200},
		{method: "GET", path: "/v3/apps/app-1/sidecars", status: 200, want: `{"pagination": {"total_results": 2}, "resources": [{"name": "mine", "origin": "user"}, {"name": "next", "origin": "buildpack"}]}`},
	})
	declare(cf.Sidecar{Name: "mine", Command: "./x", ProcessTypes: []string{"web"}, Origin: "buildpack"})
	w.run(t, []step{
		{method: "PATCH", path: current, body: `{"data": {"guid": "droplet-1"}}`, status: 422,
			want: detail(10008, "Buildpack defined sidecar 'mine' conflicts with an existing user-defined sidecar. Consider renaming 'mine'.")},
		{method: "GET", path: "/v3/apps/app-1/sidecars", status: 200, want: `{"resources": [{"name": "mine", "command": "./m"}, {"name": "next"}]}`},
	})
}

func TestRevisions(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		r := &cf.Revision{Resource: guid("revision-1"), AppGUID: "app-1", Version: 1, DropletGUID: "droplet-1", Description: "Initial revision.",
			Env: map[string]string{"K": "V"}, Commands: map[string]string{"web": ""}}
		if err := store.Revisions.Insert(tx, r); err != nil {
			return err
		}
		p, err := store.Processes.Get(tx, "app-1")
		if err != nil {
			return err
		}
		p.RevisionGUID = r.GUID
		return store.Processes.Update(tx, p)
	})
	w.run(t, []step{
		{method: "GET", path: "/v3/apps/app-1/revisions?order_by=-created_at", status: 200, want: `{"resources": [{"version": 1, "deployable": true, "droplet": {"guid": "droplet-1"}, "processes": {"web": {"command": null}}, "sidecars": [], "metadata": {"labels": {}, "annotations": {}}}]}`},
		{method: "GET", path: "/v3/apps/app-1/revisions?versions=2&page=1&per_page=2", status: 200, want: `{"resources": []}`},
		{method: "GET", path: "/v3/apps/app-1/revisions/deployed", status: 200, want: `{"resources": []}`},
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "GET", path: "/v3/apps/app-1/revisions/deployed", status: 200, want: `{"resources": [{"version": 2, "description": "New environment variables deployed."}]}`},
		{method: "GET", path: "/v3/revisions/revision-1/environment_variables", status: 200, want: `{"var": {"K": "V"}}`},
		{as: "space_auditor", method: "GET", path: "/v3/revisions/revision-1/environment_variables", status: 403},
		{method: "PATCH", path: "/v3/revisions/revision-1", body: `{"metadata": {"labels": {"a": "b"}}}`, status: 200, want: `{"metadata": {"labels": {"a": "b"}}}`},
		{method: "GET", path: "/v3/revisions/none", status: 404, want: detail(10010, "Revision not found")},
	})
}

func TestIncludes(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "GET", path: "/v3/routes?include=domain,space,space.organization", status: 200, want: `{"included": {"domains": [{"name": "apps.test"}], "spaces": [{"name": "dev"}], "organizations": [{"name": "org"}]}}`},
		{method: "GET", path: "/v3/routes/route-1?include=domain", status: 200, want: `{"included": {"domains": [{"guid": "domain-1"}]}}`},
		{method: "GET", path: "/v3/spaces?include=organization&guids=space-1", status: 200, want: `{"included": {"organizations": [{"guid": "org-1"}]}}`},
		{method: "GET", path: "/v3/spaces/space-1?include=org", status: 200, want: `{"included": {"organizations": [{"guid": "org-1"}]}}`},
		{method: "GET", path: "/v3/apps?include=space.organization", status: 200, want: `{"included": {"spaces": [{"name": "dev"}], "organizations": [{"guid": "org-1"}]}}`},
		{method: "GET", path: "/v3/routes?include=space.organization", status: 200, want: `{"included": {"spaces": [{"name": "dev"}], "organizations": [{"name": "org"}]}}`},
		{method: "GET", path: "/v3/apps/app-1?include=space", status: 200, want: `{"included": {"spaces": [{"guid": "space-1"}]}}`},
		{method: "GET", path: "/v3/routes?include=app", status: 400, want: detail(10005, "The query parameter is invalid: Invalid included resource: 'app'. Valid included resources are: 'domain', 'space', 'space.organization', 'route_policies'")},
	})
}

func TestWhatIsNotHereYetIsEmpty(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/v3/service_instances?fields[service_plan]=guid,name&order_by=name&per_page=5000&space_guids=space-1", "/v3/service_credential_bindings?include=app&service_instance_guids=x",
		"/v3/service_route_bindings?include=service_instance&route_guids=a,b", "/v3/service_offerings", "/v3/service_plans?available=true", "/v3/service_brokers", "/v3/space_quotas?organization_guids=org-1",
		"/v3/isolation_segments?organization_guids=org-1"} {
		w.run(t, []step{{as: "space_developer", method: "GET", path: path, status: 200, want: `{"resources": [], "pagination": {"total_results": 0, "next": null}}`}})
	}
	w.run(t, []step{
		{method: "GET", path: "/v3/isolation_segments?names=shared", status: 200, want: `{"resources": [{"name": "shared", "guid": "933b4c58-120b-499a-b85d-4b6fc9e2903b"}]}`},
		{method: "GET", path: "/v3/isolation_segments/933b4c58-120b-499a-b85d-4b6fc9e2903b/organizations", status: 200, want: `{"resources": []}`},
		{method: "GET", path: "/v3/organizations/org-1/relationships/default_isolation_segment", status: 200, want: `{"data": null}`},
		{method: "PATCH", path: "/v3/organizations/org-1/relationships/default_isolation_segment", body: `{"data": {"guid": "x"}}`, status: 422},
		{method: "GET", path: "/v3/spaces/space-1/relationships/isolation_segment", status: 200, want: `{"data": null}`},
		{method: "PATCH", path: "/v3/spaces/space-1/relationships/isolation_segment", body: `{"data": null}`, status: 200, want: `{"data": null}`},
		{method: "GET", path: "/v3/service_instances/x", status: 404, want: detail(10010, "Service instance not found")},
	})
}

// TestRefusedVariables shows the value of a variable as it was sent.
func TestRefusedVariables(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{{as: "space_developer", method: "POST", path: "/v3/apps", status: 422,
		body: `{"name": "v", "relationships": {"space": {"data": {"guid": "space-1"}}}, "environment_variables": {"A": {"b": [1]}}}`,
		want: detail(10008, `Non-string value in environment variable for key 'A', value '{"b":[1]}'`)}})
}
