package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// stage stages an app's newest package, and gives the build's error.
func (d *daemon) stage(t *testing.T, app string) string {
	t.Helper()
	var packages struct{ Resources []struct{ GUID string } }
	d.api("GET", "/v3/packages?order_by=-created_at&app_guids="+d.app(app), nil, &packages)
	var b struct{ GUID string }
	d.api("POST", "/v3/builds", doc{"package": doc{"guid": packages.Resources[0].GUID}}, &b)
	return d.built(t, b.GUID).Error
}

// build is a build that has ended.
type build struct {
	State, Error string
	Droplet      struct{ GUID string }
}

func (d *daemon) built(t *testing.T, guid string) (b build) {
	t.Helper()
	eventually(t, 60*time.Second, func() string {
		d.api("GET", "/v3/builds/"+guid, nil, &b)
		if b.State == "STAGING" {
			return "the build is STAGING"
		}
		return ""
	})
	return b
}

// TestCredentialsOfTheStack gives credentials in each way there is: by the
// manifest, in an app's lifecycle as Cloud Controller has it and beside its data
// as RFC-0046 has it. Tokens are for buildpacks.
func TestCredentialsOfTheStack(t *testing.T) {
	t.Parallel()
	binary, r := needBinary(t), startTLSRegistry(t)
	d := startDaemon(t, binary, "--registry-ca", r.ca)
	r.push(t, "1", v1.Config{}, smallStack(t, "private"))
	d.flag("diego_custom_stacks", true)

	const denied, incomplete = "the registry refuses access", "must include 'username' and 'password'"
	right, wrong := doc{"username": registryUser, "password": registryPassword}, doc{"username": registryUser, "password": "wrong"}
	cases := []struct {
		name        string
		credentials doc
		fault       string // "" for none
	}{
		{"none", doc{}, denied},
		{"wrong", doc{r.host: wrong}, denied},
		{"token only", doc{r.host: doc{"token": registryPassword}}, denied},
		{"of another registry", doc{"registry.example.com": right}, denied},
		{"password alone", doc{r.host: doc{"password": registryPassword}}, incomplete},
		{"right", doc{r.host: right}, ""},
		{"right, and a token", doc{r.host: doc{"username": registryUser, "password": registryPassword, "token": "x"}, "other": doc{"token": "y"}}, ""},
		{"wrong, with the image here", doc{r.host: wrong}, denied},
	}
	app := imageApp{"private", "docker://" + r.host + "/stacks/small:1", serveBuildpack(t)}
	dir := app.dir(t, nil)
	for _, c := range cases {
		app.writeManifest(t, dir, c.credentials)
		out, err := d.run("push", dir)
		if (err == nil) != (c.fault == "") || !strings.Contains(out, c.fault) {
			t.Errorf("%s, by the manifest: got %v; want %q\n%s", c.name, err, c.fault, out)
		}
		for where, lifecycle := range map[string]doc{
			"beside data": {"data": doc{}, "credentials": c.credentials},
			"in data":     {"data": doc{"credentials": c.credentials}},
		} {
			lifecycle["type"] = "buildpack"
			if got := d.restage(t, "private", lifecycle); (got == "") != (c.fault == "") || !strings.Contains(got, c.fault) {
				t.Errorf("%s, %s: got %q; want %q", c.name, where, got, c.fault)
			}
		}
	}
	both := doc{"type": "buildpack", "data": doc{"credentials": doc{r.host: right}}, "credentials": doc{r.host: right}}
	if got := d.restage(t, "private", both); !strings.Contains(got, "not both") {
		t.Errorf("both: got %q", got)
	}
	d.keepsSecret(t, "private")
}

// restage changes an app's lifecycle and stages it anew. It gives the error of
// the one or the other.
func (d *daemon) restage(t *testing.T, app string, lifecycle doc) string {
	t.Helper()
	if err := d.client().call(context.Background(), "PATCH", "/v3/apps/"+d.app(app), doc{"lifecycle": lifecycle}, nil); err != nil {
		return err.Error()
	}
	return d.stage(t, app)
}

// keepsSecret looks for the password where an app is shown.
func (d *daemon) keepsSecret(t *testing.T, app string) {
	t.Helper()
	guid := d.app(app)
	for _, path := range []string{"/v3/apps/" + guid, "/v3/apps/" + guid + "/builds", "/v3/audit_events?target_guids=" + guid} {
		var shown any
		d.api("GET", path, nil, &shown)
		if text := fmt.Sprint(shown); strings.Contains(text, registryPassword) {
			t.Errorf("%s shows the password: %s", path, text)
		}
	}
	if text := d.log.String(); strings.Contains(text, registryPassword) {
		t.Errorf("the daemon's log shows the password:\n%s", text)
	}
}
