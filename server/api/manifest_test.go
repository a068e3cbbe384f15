package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"cupola/store"
	"cupola/store/cf"
)

const richManifest = `
applications:
- name: rich
  buildpacks: [go_buildpack, "https://joe:secret@example.com/bp.zip"]
  stack: minifs
  env: {A: b, NUMBER: 7, YES: true, "EMPTY": "", MULTI: "a: b\n- c #d"}
  features: {ssh: false, revisions: false}
  metadata:
    labels: {team: blue, example.com/tier: "1"}
    annotations: {contact: "joe <joe@example.com>: #1"}
  routes:
  - route: rich.apps.test
  - route: rich.apps.test/v2
    protocol: http2
    options: {loadbalancing: least-connection}
  processes:
  - type: web
    command: ./run --port $PORT
    instances: 2
    memory: 256M
    disk_quota: 2G
    log-rate-limit-per-second: 16K
    timeout: 90
    health-check-type: http
    health-check-http-endpoint: /health
    health-check-invocation-timeout: 3
    health-check-interval: 7
    readiness-health-check-type: http
    readiness-health-check-http-endpoint: /ready
    readiness-health-check-invocation-timeout: 2
    readiness-health-check-interval: 5
  - type: worker
    instances: 0
    memory: 64M
    log-rate-limit-per-second: -1
    health-check-type: process
  sidecars:
  - name: proxy
    command: ./proxy
    process_types: [web, worker]
    memory: 32M
`

// apply applies a manifest and wants its job to be done.
func (w *world) apply(t *testing.T, text string) {
	t.Helper()
	got := w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", text, "application/x-yaml")
	if got.status != 202 {
		t.Fatalf("got %d %s; want 202", got.status, got.text)
	}
	w.saved["job"] = guidOf(got)
	w.run(t, []step{{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "COMPLETE", "errors": []}`}})
}

func (w *world) manifestOf(t *testing.T, app string) (text string, v map[string]any) {
	t.Helper()
	list := w.ask("space_developer", "GET", "/v3/apps?names="+app, "", "")
	got := w.ask("space_developer", "GET", "/v3/apps/"+firstGUID(t, list)+"/manifest", "", "")
	if err := yaml.Unmarshal([]byte(got.text), &v); err != nil || got.status != 200 {
		t.Fatalf("got %d %s: %v", got.status, got.text, err)
	}
	return got.text, v
}

// What create-app-manifest writes makes the same app again, and changes nothing
// of the one it was written for.
func TestManifestRoundTrip(t *testing.T) {
	w := newWorld(t)
	w.apply(t, richManifest)
	text, first := w.manifestOf(t, "rich")
	for _, m := range []string{richManifest, text} {
		if got := w.ask("space_developer", "POST", "/v3/spaces/space-1/manifest_diff", m, "application/x-yaml"); got.text != `{"diff":[]}` {
			t.Errorf("it would be changed by what it is: %s\n%s", got.text, m)
		}
	}
	w.apply(t, text)
	if _, again := w.manifestOf(t, "rich"); cmp.Diff(first, again) != "" {
		t.Errorf("applied again: %s", cmp.Diff(first, again))
	}
	w.run(t, []step{{method: "DELETE", path: "/v3/apps/" + firstGUID(t, w.ask("admin", "GET", "/v3/apps?names=rich", "", "")), status: 202}})
	w.apply(t, text)
	if _, other := w.manifestOf(t, "rich"); cmp.Diff(first, other) != "" {
		t.Errorf("applied to nothing: %s", cmp.Diff(first, other))
	}
	if routes, ok := first["applications"].([]any)[0].(map[string]any)["routes"].([]any); !ok || !strings.Contains(fmt.Sprint(routes[1]), "least-connection") {
		t.Errorf("got the routes %v; want an option", routes)
	}
}

func TestManifestsKeepToTheQuota(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		a, err := store.Apps.Get(tx, "app-1")
		if err != nil {
			return err
		}
		a.State = cf.Started
		if err := store.Apps.Update(tx, a); err != nil {
			return err
		}
		q, err := store.OrgQuotas.First(tx, store.Query{})
		if err != nil {
			return err
		}
		limit := 2048
		q.Limits.TotalMemoryMB = &limit
		return store.OrgQuotas.Update(tx, q)
	})
	got := w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", "applications:\n- name: hello\n  instances: 3\n", "application/x-yaml")
	w.saved["job"] = guidOf(got)
	w.run(t, []step{
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "FAILED", "errors": [{"detail": "For application 'hello': memory quota_exceeded"}]}`},
		{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"instances": 1}`},
	})
	w.apply(t, "applications:\n- name: hello\n  instances: 2\n")
}

// A sidecar of several processes is one, and the same when it is applied again.
func TestManifestSidecars(t *testing.T) {
	w := newWorld(t)
	const text = `
applications:
- name: hello
  processes: [{type: web, memory: 512M}, {type: worker, memory: 64M}]
  sidecars: [{name: s, command: ./s, process_types: [web, worker], memory: 32M}]
`
	w.apply(t, text)
	first := w.ask("admin", "GET", "/v3/apps/app-1/sidecars", "", "")
	w.saved["sidecar"] = firstGUID(t, first)
	w.apply(t, text)
	w.run(t, []step{{method: "GET", path: "/v3/apps/app-1/sidecars", status: 200, want: `{"pagination": {"total_results": 1}, "resources": [{"guid": "{sidecar}", "process_types": ["web", "worker"]}]}`}})
	got := w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", strings.Replace(text, "32M", "64M", 1), "application/x-yaml")
	w.saved["job"] = guidOf(got)
	w.run(t, []step{{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "FAILED", "errors": [{"detail": "For application 'hello': The memory allocation defined is too large to run with the dependent \"worker\" process"}]}`}})
}
