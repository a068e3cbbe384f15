package api

import (
	"testing"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// The names of buildpacks are those of CC: app/repositories/app_usage_event_repository.rb.
func TestAppUsage(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		d, err := store.Droplets.Get(tx, "droplet-1")
		if err != nil {
			return err
		}
		d.Buildpacks = []cf.DropletBuildpack{{Name: "staticfile_buildpack", BuildpackName: "staticfile"}, {Name: "go_buildpack", BuildpackName: "go"}}
		return control.OrElse(store.Droplets.Update(tx, d), store.AppUsageEvents.Reseed(tx))
	})
	w.run(t, []step{
		{method: "GET", path: "/v3/app_usage_events", status: 200, want: `{"pagination": {"total_results": 0}}`},
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 3, "memory_in_mb": 64}`, status: 202},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"disk_in_mb": 64}`, status: 202},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x", "name": "t", "memory_in_mb": 16}`, status: 202},
		{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-1"}, "staging_memory_in_mb": 100}`, status: 201, save: "build"},
		{method: "GET", path: "/v3/app_usage_events", status: 200, want: `{"resources": [
			{"state": {"current": "STARTED", "previous": "STOPPED"}, "app": {"guid": "app-1", "name": "hello"}, "process": {"guid": "app-1", "type": "web"}, "space": {"guid": "space-1", "name": "dev"},
			 "organization": {"guid": "org-1"}, "buildpack": {"name": "go_buildpack"}, "task": {"guid": null, "name": null}, "memory_in_mb_per_instance": {"current": 1024, "previous": 1024}, "instance_count": {"current": 1, "previous": 1}},
			{"state": {"current": "STARTED", "previous": "STARTED"}, "memory_in_mb_per_instance": {"current": 64, "previous": 1024}, "instance_count": {"current": 3, "previous": 1}},
			{"state": {"current": "TASK_STARTED", "previous": "PENDING"}, "app": {"guid": "app-1"}, "process": {"guid": null, "type": null}, "task": {"name": "t"}, "buildpack": {"guid": null, "name": null}, "memory_in_mb_per_instance": {"current": 16}},
			{"state": {"current": "STAGING_STARTED", "previous": "STAGING"}, "process": {"guid": null}}]}`},
	})
	w.write(func(tx *store.Tx) error {
		b, err := store.Builds.Get(tx, w.saved["build"])
		if err != nil {
			return err
		}
		b.State, b.DropletGUID = cf.BuildStaged, "droplet-1"
		return store.Builds.Update(tx, b)
	})
	w.saved["first"] = firstGUID(t, w.ask("admin", "GET", "/v3/app_usage_events", "", ""))
	w.run(t, []step{
		{method: "DELETE", path: "/v3/apps/app-1", status: 202},
		{method: "GET", path: "/v3/app_usage_events?after_guid={first}", status: 200, want: `{"pagination": {"total_results": 7}}`},
		{method: "GET", path: "/v3/app_usage_events?order_by=-created_at&per_page=4", status: 200, want: `{"resources": [
			{"state": {"current": "TASK_STOPPED"}, "task": {"name": "t"}}, {"state": {"current": "STOPPED", "previous": "STARTED"}, "process": {"guid": "app-1"}, "instance_count": {"current": 3}},
			{"state": {"current": "BUILDPACK_SET"}, "buildpack": {"name": "go_buildpack"}}, {"state": {"current": "STAGING_STOPPED", "previous": "STAGING"}}]}`},
		{method: "GET", path: "/v3/app_usage_events/{first}", status: 200, want: `{"guid": "{first}", "links": {"self": {"href": "{url}/v3/app_usage_events/{first}"}}}`},
		{method: "GET", path: "/v3/app_usage_events?after_guid=none", status: 422, want: detail(10008, "After guid filter must be a valid app usage event guid.")},
		{method: "GET", path: "/v3/app_usage_events?after_guid=a,b", status: 422},
		{method: "GET", path: "/v3/app_usage_events?order_by=updated_at", status: 422},
		{as: "global_auditor", method: "GET", path: "/v3/app_usage_events", status: 200, want: `{"pagination": {"total_results": 8}}`},
		{as: "org_manager", method: "GET", path: "/v3/app_usage_events", status: 200, want: `{"pagination": {"total_results": 0}}`},
		{as: "org_manager", method: "GET", path: "/v3/app_usage_events/{first}", status: 404, want: detail(10010, "App usage event not found")},
		{method: "POST", path: "/v3/app_usage_events/actions/destructively_purge_all_and_reseed", status: 200},
		{method: "GET", path: "/v3/app_usage_events", status: 200, want: `{"pagination": {"total_results": 0}}`},
	})
}

// A process' event names a buildpack with a URL before all others, a build's the
// last (CC: ProcessModel#custom_buildpack_url, DropletModel#set_buildpack_receipt).
func TestUsageOfBuildpackByURL(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		d, err := store.Droplets.Get(tx, "droplet-1")
		if err != nil {
			return err
		}
		d.Buildpacks = []cf.DropletBuildpack{{Name: "https://***:***@example.com/bp.git", BuildpackName: "own"}, {Name: "go_buildpack", BuildpackName: "go"}}
		return store.Droplets.Update(tx, d)
	})
	w.run(t, []step{
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "GET", path: "/v3/app_usage_events?order_by=-created_at&per_page=1", status: 200, want: `{"resources": [
			{"state": {"current": "STARTED"}, "buildpack": {"name": "https://***:***@example.com/bp.git"}}]}`},
		{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-1"}, "lifecycle": {"type": "buildpack", "data": {"buildpacks": ["https://u:p@example.com/first.git", "go_buildpack"]}}}`, status: 201, save: "build"},
		{method: "GET", path: "/v3/app_usage_events?order_by=-created_at&per_page=1", status: 200, want: `{"resources": [
			{"state": {"current": "STAGING_STARTED"}, "buildpack": {"guid": null, "name": "https://***:***@example.com/first.git"}}]}`},
	})
	w.write(func(tx *store.Tx) error {
		b, err := store.Builds.Get(tx, w.saved["build"])
		if err != nil {
			return err
		}
		b.State, b.DropletGUID = cf.BuildStaged, "droplet-1"
		return store.Builds.Update(tx, b)
	})
	w.run(t, []step{{method: "GET", path: "/v3/app_usage_events?order_by=-created_at&per_page=1", status: 200, want: `{"resources": [
		{"state": {"current": "BUILDPACK_SET"}, "buildpack": {"name": "go_buildpack"}}]}`}})
}

// TestUsageOfNew checks the usage events of processes that a started app gets and loses, as
// deployments give and take them, and of one that lives when usage is seeded.
func TestUsageOfNew(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200}})
	w.write(func(tx *store.Tx) error {
		p := &cf.Process{Resource: guid("web-2"), AppGUID: "app-1", Type: "web", Instances: 2, MemoryMB: 32}
		return control.OrElse(store.Processes.Insert(tx, p), store.Processes.Delete(tx, "app-1"))
	})
	w.run(t, []step{
		{method: "GET", path: "/v3/app_usage_events?order_by=created_at&page=2&per_page=1", status: 200, want: `{"resources": [
			{"state": {"current": "STARTED", "previous": "STOPPED"}, "process": {"guid": "web-2"}, "instance_count": {"current": 2}}]}`},
		{method: "GET", path: "/v3/app_usage_events?page=3&per_page=1", status: 200, want: `{"resources": [{"state": {"current": "STOPPED", "previous": "STARTED"}, "process": {"guid": "app-1"}}]}`},
		{method: "POST", path: "/v3/app_usage_events/actions/destructively_purge_all_and_reseed", status: 200},
		{method: "GET", path: "/v3/app_usage_events", status: 200, want: `{"pagination": {"total_results": 1}, "resources": [{"guid": "web-2", "state": {"current": "STARTED", "previous": "STARTED"}, "instance_count": {"current": 2, "previous": 2}}]}`},
	})
}

func TestServiceUsage(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	w.run(t, []step{
		{method: "GET", path: "/v3/service_usage_events?service_instance_types=managed_service_instance&per_page=1", status: 200, want: `{"resources": [{"state": "CREATED", "space": {"guid": "space-1", "name": "dev"},
			"organization": {"guid": "org-1"}, "service_instance": {"guid": "db-1", "type": "managed_service_instance"}, "service_plan": {"guid": "plan-s"}, "service_offering": {"guid": "offering-s"}}]}`},
		{method: "POST", path: "/v3/service_usage_events/actions/destructively_purge_all_and_reseed", status: 200},
		{method: "GET", path: "/v3/service_usage_events/ups-1", status: 200, want: `{"state": "CREATED", "service_instance": {"guid": "ups-1", "type": "user_provided_service_instance"},
			"service_plan": {"guid": null, "name": null}, "service_offering": {"guid": null}, "service_broker": {"guid": null}, "links": {"self": {"href": "{url}/v3/service_usage_events/ups-1"}}}`},
		{method: "POST", path: "/v3/service_instances", body: `{"type": "user-provided", "name": "mine", ` + toSpace + `}`, status: 201, save: "mine"},
		{method: "PATCH", path: "/v3/service_instances/{mine}", body: `{"tags": ["a"]}`, status: 200},
		{method: "PATCH", path: "/v3/service_instances/{mine}", body: `{"name": "yours"}`, status: 200},
		{method: "DELETE", path: "/v3/service_instances/{mine}", status: 204},
		{method: "GET", path: "/v3/service_usage_events?order_by=-created_at&per_page=3", status: 200, want: `{"resources": [
			{"state": "DELETED", "service_instance": {"name": "yours"}}, {"state": "UPDATED", "service_instance": {"name": "yours"}}, {"state": "CREATED", "service_instance": {"name": "mine"}}]}`},
		{method: "GET", path: "/v3/service_usage_events?service_offering_guids=none", status: 200, want: `{"pagination": {"total_results": 0}}`},
		{method: "GET", path: "/v3/service_usage_events?after_guid=none", status: 422, want: detail(10008, "After guid filter must be a valid service usage event guid.")},
		{as: "space_developer", method: "GET", path: "/v3/service_usage_events/ups-1", status: 404, want: detail(10010, "Service usage event not found")},
	})
}
