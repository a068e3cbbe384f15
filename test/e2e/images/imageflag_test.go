package images

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// TestImagesNeedTheirFlags turns each flag off under an app that runs, and holds
// that nothing new starts.
func TestImagesNeedTheirFlags(t *testing.T) {
	t.Parallel()
	binary, r := e2e.NeedBinary(t), e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, binary, "--registry-ca", r.CA)
	r.Push(t, "1", v1.Config{Cmd: []string{"sleep", "1000"}}, e2e.SmallStack(t, "flagged"))
	image := r.Host + "/stacks/small:1"
	d.Flag("diego_custom_stacks", true)
	d.Flag("diego_docker", true)
	app := imageApp{"stacked", "docker://" + image, serveBuildpack(t)}
	if out, err := d.Run("push", app.dir(t, credentialsOf(r))); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	if fault := d.PushDocker(t, "docker", image, e2e.RegistryPassword); fault != "" {
		t.Fatal(fault)
	}
	for flag, c := range map[string]struct {
		app       string
		lifecycle e2e.Doc
		manifest  string
	}{
		"diego_custom_stacks": {"stacked", e2e.Doc{"type": "buildpack", "data": e2e.Doc{"stack": "docker://" + image}}, "stack: docker://" + image},
		"diego_docker":        {"docker", e2e.Doc{"type": "docker", "data": e2e.Doc{}}, "docker: {image: " + image + "}"},
	} {
		guid, space := d.App(c.app), d.First("/v3/spaces?names=dev")
		of := e2e.Doc{"space": e2e.Doc{"data": e2e.Doc{"guid": space}}}
		build := e2e.Doc{"package": e2e.Doc{"guid": d.First("/v3/packages?app_guids=" + guid)}}
		d.API("POST", "/v3/apps/"+guid+"/actions/stop", nil, nil)
		d.Flag(flag, false)
		forbids(d, t, flag, "/v3/apps", e2e.Doc{"name": "new", "lifecycle": c.lifecycle, "relationships": of})
		forbids(d, t, flag, "/v3/apps/"+guid+"/actions/start", nil)
		forbids(d, t, flag, "/v3/apps/"+guid+"/actions/restart", nil)
		forbids(d, t, flag, "/v3/builds", build)
		for _, name := range []string{"new", c.app} {
			err := d.Client().ApplyManifest(context.Background(), space, fmt.Appendf(nil, "applications: [{name: %s, %s}]", name, c.manifest))
			if want := fmt.Sprintf("For application '%s': Feature Disabled: %s", name, flag); err == nil || err.Error() != want {
				t.Errorf("manifest of the app %s: got %v; want %q", name, err, want)
			}
		}
	}
}

// forbids wants Cloud Controller's answer where a feature is off.
func forbids(d *e2e.Daemon, t *testing.T, flag, path string, body any) {
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
	status, answer := d.Post(path, "application/json", bytes.NewReader(text))
	if err := json.Unmarshal([]byte(answer), &said); status != 403 || err != nil || len(said.Errors) != 1 ||
		said.Errors[0] != (fault{330002, "CF-FeatureDisabled", "Feature Disabled: " + flag}) {
		t.Errorf("POST %s: got %d %s", path, status, answer)
	}
}
