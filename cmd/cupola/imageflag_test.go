package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// TestImagesNeedTheirFlags turns each flag off under an app that runs, and holds
// that nothing new starts.
func TestImagesNeedTheirFlags(t *testing.T) {
	t.Parallel()
	binary, r := needBinary(t), startTLSRegistry(t)
	d := startDaemon(t, binary, "--registry-ca", r.ca)
	r.push(t, "1", v1.Config{Cmd: []string{"sleep", "1000"}}, smallStack(t, "flagged"))
	image := r.host + "/stacks/small:1"
	d.flag("diego_custom_stacks", true)
	d.flag("diego_docker", true)
	app := imageApp{"stacked", "docker://" + image, serveBuildpack(t)}
	if out, err := d.run("push", app.dir(t, r.credentials())); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	if fault := d.pushDocker(t, "docker", image, registryPassword); fault != "" {
		t.Fatal(fault)
	}
	for flag, c := range map[string]struct {
		app       string
		lifecycle doc
		manifest  string
	}{
		"diego_custom_stacks": {"stacked", doc{"type": "buildpack", "data": doc{"stack": "docker://" + image}}, "stack: docker://" + image},
		"diego_docker":        {"docker", doc{"type": "docker", "data": doc{}}, "docker: {image: " + image + "}"},
	} {
		guid, space := d.app(c.app), d.first("/v3/spaces?names=dev")
		of := doc{"space": doc{"data": doc{"guid": space}}}
		build := doc{"package": doc{"guid": d.first("/v3/packages?app_guids=" + guid)}}
		d.api("POST", "/v3/apps/"+guid+"/actions/stop", nil, nil)
		d.flag(flag, false)
		d.forbids(t, flag, "/v3/apps", doc{"name": "new", "lifecycle": c.lifecycle, "relationships": of})
		d.forbids(t, flag, "/v3/apps/"+guid+"/actions/start", nil)
		d.forbids(t, flag, "/v3/apps/"+guid+"/actions/restart", nil)
		d.forbids(t, flag, "/v3/builds", build)
		for _, name := range []string{"new", c.app} {
			err := (&pusher{client: d.client()}).apply(context.Background(), space, fmt.Appendf(nil, "applications: [{name: %s, %s}]", name, c.manifest))
			if want := fmt.Sprintf("For application '%s': Feature Disabled: %s", name, flag); err == nil || err.Error() != want {
				t.Errorf("manifest of the app %s: got %v; want %q", name, err, want)
			}
		}
	}
}

func (d *daemon) flag(name string, on bool) {
	d.t.Helper()
	d.api("PATCH", "/v3/feature_flags/"+name, doc{"enabled": on}, nil)
}

// first is the GUID of the first resource of a list.
func (d *daemon) first(path string) string {
	d.t.Helper()
	var list struct{ Resources []struct{ GUID string } }
	d.api("GET", path, nil, &list)
	if len(list.Resources) == 0 {
		d.t.Fatalf("%s is empty", path)
	}
	return list.Resources[0].GUID
}

// forbids wants Cloud Controller's answer where a feature is off.
func (d *daemon) forbids(t *testing.T, flag, path string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	type fault struct {
		Code          int
		Title, Detail string
	}
	var said struct{ Errors []fault }
	status, answer := d.post(path, "application/json", bytes.NewReader(text))
	if err := json.Unmarshal([]byte(answer), &said); status != 403 || err != nil || len(said.Errors) != 1 ||
		said.Errors[0] != (fault{330002, "CF-FeatureDisabled", "Feature Disabled: " + flag}) {
		t.Errorf("POST %s: got %d %s", path, status, answer)
	}
}
