package api

import (
	"strings"
	"testing"
)

// TestManifestJobs applies a manifest with jobs and a release command twice: the second time
// changes nothing, a changed one changes the job, and the app's manifest has them.
func TestManifestJobs(t *testing.T) {
	w := newWorld(t)
	const text = `applications:
- name: hello
  release: bin/migrate
  jobs:
  - name: nightly
    command: bin/clean
    schedule: CRON_TZ=Europe/Berlin 30 2 * * *
    memory: 64M
    timeout: 600
`
	w.apply(t, text)
	w.run(t, []step{
		{method: "GET", path: "/jobs?app_guid=app-1", status: 200, save: "", want: `{"resources": [{"name": "nightly", "command": "bin/clean", "memory_in_mb": 64, "timeout_in_seconds": 600}]}`},
		{method: "GET", path: "/v3/apps/app-1/processes/release", status: 200, want: `{"command": "bin/migrate", "instances": 0}`},
	})
	job := w.first("/jobs?app_guid=app-1")
	schedule := w.first("/jobs/" + job + "/schedules")
	if diff := w.ask("admin", "POST", "/v3/spaces/space-1/manifest_diff", text, "application/x-yaml"); diff.status != 201 || strings.Contains(diff.text, "jobs") || strings.Contains(diff.text, "release") {
		t.Errorf("got %d %s; want no change", diff.status, diff.text)
	}
	w.apply(t, text)
	if got := w.first("/jobs/" + job + "/schedules"); got != schedule {
		t.Errorf("the schedule was replaced by one alike")
	}
	w.apply(t, strings.NewReplacer("bin/clean", "bin/other", "CRON_TZ=Europe/Berlin 30 2 * * *", `["@daily", "@weekly"]`).Replace(text))
	w.run(t, []step{
		{method: "GET", path: "/jobs?app_guid=app-1", status: 200, want: `{"resources": [{"guid": "` + job + `", "command": "bin/other"}]}`},
		{method: "GET", path: "/jobs/" + job + "/schedules", status: 200, want: `{"resources": [{"expression": "@daily"}, {"expression": "@weekly"}]}`},
	})
	_, m := w.manifestOf(t, "hello")
	app := m["applications"].([]any)[0].(map[string]any)
	jobs, _ := app["jobs"].([]any)
	if len(jobs) != 1 || jobs[0].(map[string]any)["name"] != "nightly" {
		t.Errorf("got the manifest %v", app)
	}
	w.apply(t, "applications:\n- name: hello\n")
	w.run(t, []step{{method: "GET", path: "/jobs?app_guid=app-1", status: 200, want: `{"pagination": {"total_results": 1}}`}})
}
