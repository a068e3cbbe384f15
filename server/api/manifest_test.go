package api

import (
	"encoding/json"
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

// The request for a new app with a buildpack that is not there fails at once, the job
// for an app that is there (CC: AppFindOrCreateSkeleton, spec/unit/controllers/v3/space_manifests_controller_spec.rb).
func TestManifestBuildpacks(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{{method: "POST", path: "/v3/buildpacks", body: `{"name": "waiting"}`, status: 201}})
	apply := func(text string) answer {
		return w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", text, "application/x-yaml")
	}
	for list, want := range map[string]string{
		"none":                           `For application 'new': Specified unknown buildpack name: "none"`,
		"none, ruby_buildpack, nor-this": `For application 'new': Specified unknown buildpack name: "none", Specified unknown buildpack name: "nor-this"`,
		"waiting":                        `For application 'new': "waiting" must be in ready state`,
	} {
		got := apply("applications:\n- name: new\n  buildpacks: [" + list + "]\n")
		var fault any
		if err := json.Unmarshal([]byte(detail(10008, want)), &fault); err != nil {
			t.Fatal(err)
		}
		if why := lacks(fault, got.json, ""); got.status != 422 || why != "" {
			t.Errorf("%s: got %d %s; want %s", list, got.status, got.text, want)
		}
	}
	w.run(t, []step{{method: "GET", path: "/v3/apps?names=new", status: 200, want: `{"resources": []}`}})
	w.saved["job"] = guidOf(apply("applications:\n- name: hello\n  buildpacks: [none, nor-this]\n"))
	w.run(t, []step{{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "FAILED", "errors": [{"detail": ` +
		`"For application 'hello': Buildpack \"none\" for stack \"minifs\" must be an existing admin buildpack or a valid git URI, Buildpack \"nor-this\" for stack \"minifs\" must be an existing admin buildpack or a valid git URI"}]}`}})
}

// A build names its buildpacks, or its app does; those that are gone or disabled by
// then are refused (CC: builds_controller.rb, BuildCreate#requested_buildpacks_disabled!).
func TestBuildsOfUnusableBuildpacks(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "PATCH", path: "/v3/apps/app-1", body: `{"lifecycle": {"data": {"buildpacks": ["ruby_buildpack", "go_buildpack"]}}}`, status: 200},
		{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-1"}, "lifecycle": {"type": "buildpack", "data": {"buildpacks": ["none"], "stack": "nowhere"}}}`, status: 422,
			want: detail(10008, `Buildpack "none" must be an existing admin buildpack or a valid git URI, Stack must be an existing stack, or an image: docker://host[:port]/namespace/name[:tag|@digest]`)},
	})
	w.write(func(tx *store.Tx) error {
		all, err := store.Buildpacks.All(tx)
		if err != nil {
			return err
		}
		for _, b := range all {
			b.Enabled = b.Name == "staticfile_buildpack"
			if err := store.Buildpacks.Update(tx, b); err != nil {
				return err
			}
		}
		return nil
	})
	w.run(t, []step{{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-1"}}`, status: 400,
		want: `{"errors": [{"code": 290003, "title": "CF-BuildpackInvalid", "detail": "Buildpack is invalid: Requested buildpack(s) 'ruby_buildpack', 'go_buildpack' are disabled and cannot be used for staging"}]}`}})
	w.write(func(tx *store.Tx) error {
		b, err := store.Buildpacks.By(tx, "names", "ruby_buildpack")
		if err != nil {
			return err
		}
		return store.Buildpacks.Delete(tx, b[0].GUID)
	})
	w.run(t, []step{{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-1"}}`, status: 422,
		want: detail(10008, `Buildpack "ruby_buildpack" for stack "minifs" must be an existing admin buildpack or a valid git URI`)}})
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
