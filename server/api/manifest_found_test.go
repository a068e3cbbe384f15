package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// What Cloud Controller's request finds wrong with a manifest is a 422; what its job
// finds fails the job (CC: SpaceManifestsController.apply_manifest, AppManifestMessage,
// AppFindOrCreateSkeleton; AppApplyManifest, SpaceApplyManifestActionJob).
func TestWhereAManifestIsFoundWrong(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		return store.Stacks.Insert(tx, &cf.Stack{Name: "shut", State: "DISABLED"})
	})
	const docker = "applications: [{name: %s, docker: {image: r.io/x}}]"
	for _, tt := range []struct {
		text   string
		job    bool
		code   int
		detail string
	}{
		{fmt.Sprintf(docker, "new"), false, 10008, "For application 'new': Feature Disabled: diego_docker"},
		{fmt.Sprintf(docker, "hello"), false, 10008, "For application 'hello': Feature Disabled: diego_docker"},
		{"applications: [{name: new, lifecycle: cnb}]", false, 10008, "For application 'new': Feature Disabled: diego_cnb"},
		{"applications: [{name: hello, cnb-credentials: {example.com: x}}]", false, 10008, "For application 'hello': Credentials for registry 'example.com' must be a hash"},
		{"applications: [{name: new, metadata: {labels: {a/b/c: d}}}]", false, 10008, "For application 'new': Metadata label key error: key has more than one '/'"},
		{"applications: [{name: new, health-check-type: port, health-check-http-endpoint: /x}]", false, 10008, `For application 'new': Process "web": Health check type must be "http" to set a health check HTTP endpoint`},
		{"applications: [{name: new, processes: [{type: web, user: 5}]}]", false, 10008, `For application 'new': Process "web": User must be a string`},
		{"applications: [{name: new, stack: shut}]", false, 10008, "For application 'new': ERROR: Staging failed. The stack 'shut' is 'DISABLED' and cannot be used for staging."},
		{"applications: [{name: new, stack: nowhere}]", true, 10008, "For application 'new': Stack must be an existing stack, or an image: docker://host[:port]/namespace/name[:tag|@digest]"},
		{"applications: [{name: hello, stack: nowhere}]", true, 10008, "For application 'hello': Stack must be an existing stack, or an image: docker://host[:port]/namespace/name[:tag|@digest]"},
		{"applications: [{name: hello, processes: [{type: web, user: root}]}]", true, 10008, "For application 'hello': user invalid (requested user 'root' not allowed, permitted users are: 'vcap')"},
		{"applications: [{name: hello, services: [gone]}]", true, 10010, "For application 'hello': Service instance 'gone' not found"},
		// Of several faults the job finds the one that its order comes to first.
		{"applications: [{name: hello, stack: nowhere, disk_quota: 99G, services: [gone]}]", true, 10008, "For application 'hello': disk_quota too much disk requested (requested 101376 MB - must be less than 10240 MB)"},
	} {
		got := w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", tt.text, "application/x-yaml")
		if tt.job != (got.status == 202) {
			t.Errorf("%s: got %d %s", tt.text, got.status, got.text)
			continue
		}
		if tt.job {
			got = w.ask("space_developer", "GET", "/v3/jobs/"+guidOf(got), "", "")
		}
		var body struct {
			Errors []struct {
				Code   int
				Detail string
			}
		}
		if err := json.Unmarshal([]byte(got.text), &body); err != nil || len(body.Errors) != 1 || body.Errors[0].Code != tt.code || body.Errors[0].Detail != tt.detail {
			t.Errorf("%s: got %s; want %d %s", tt.text, got.text, tt.code, tt.detail)
		}
	}
	// The app of a failed job stays, as it was made.
	w.run(t, []step{{method: "GET", path: "/v3/apps?names=new", status: 200, want: `{"resources": [{"name": "new", "lifecycle": {"data": {"stack": "nowhere"}}}]}`}})
	w.apply(t, "applications: [{name: new, buildpacks: [go_buildpack]}]")      // which does not ask for the stack
	w.apply(t, "applications: [{name: hello, lifecycle: other, stack: null}]") // Cloud Controller passes over both
}

// An entry for the other lifecycle than its app's is refused at once.
func TestManifestsOfAnotherLifecycle(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{as: "admin", method: "PATCH", path: "/v3/feature_flags/diego_docker", body: `{"enabled": true}`, status: 200},
		{method: "POST", path: "/v3/apps", body: `{"name": "image", "lifecycle": {"type": "docker", "data": {}}, "relationships": {"space": {"data": {"guid": "space-1"}}}}`, status: 201},
	})
	for text, want := range map[string]string{
		"applications: [{name: hello, docker: {image: r.io/x}}]":                       "For application 'hello': Docker cannot be configured for a buildpack lifecycle app.",
		"applications: [{name: new, lifecycle: buildpack, docker: {image: r.io/x}}]":   "For application 'new': Docker cannot be configured for a buildpack lifecycle app.",
		"applications: [{name: image, buildpack: default}]":                            "For application 'image': Buildpack cannot be configured for a docker lifecycle app.",
		"applications: [{name: image, buildpacks: []}, {name: hello, docker: {x: y}}]": "For application 'image': Buildpacks cannot be configured for a docker lifecycle app.",
	} {
		got := w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", text, "application/x-yaml")
		if got.status != 422 || !strings.Contains(got.text, want) {
			t.Errorf("%s: got %d %s; want %s", text, got.status, got.text, want)
		}
	}
}

// A process of a manifest names whom it runs as, and manifests show it (CC:
// ManifestProcessUpdateMessage, ProcessPropertiesPresenter).
func TestManifestUsers(t *testing.T) {
	w := newWorld(t)
	shown := func() string {
		return w.ask("space_developer", "GET", "/v3/apps/app-1/manifest", "", "").text
	}
	w.apply(t, "applications: [{name: hello, user: root, processes: [{type: web}, {type: worker, user: VCAP}]}]") // an entry's own user is unknown
	if got := shown(); strings.Count(got, "user: vcap") != 1 {
		t.Errorf("got %s", got)
	}
	w.apply(t, "applications: [{name: hello, processes: [{type: worker, user: null}]}]")
	if got := shown(); strings.Contains(got, "user:") {
		t.Errorf("got %s", got)
	}
}
