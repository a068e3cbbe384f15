package images

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// stage stages an app's newest package, and gives the build's error.
func stage(d *e2e.Daemon, t *testing.T, app string) string {
	t.Helper()
	var packages struct{ Resources []struct{ GUID string } }
	d.API("GET", "/v3/packages?order_by=-created_at&app_guids="+d.App(app), nil, &packages)
	var b struct{ GUID string }
	d.API("POST", "/v3/builds", e2e.Doc{"package": e2e.Doc{"guid": packages.Resources[0].GUID}}, &b)
	return d.Built(t, b.GUID).Error
}

// TestCredentialsOfTheStack gives credentials in each way there is: by the
// manifest, in an app's lifecycle as Cloud Controller has it and beside its data
// as RFC-0046 has it. Tokens are for buildpacks.
func TestCredentialsOfTheStack(t *testing.T) {
	t.Parallel()
	binary, r := e2e.NeedBinary(t), e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, binary, "--registry-ca", r.CA)
	r.Push(t, "1", v1.Config{}, e2e.SmallStack(t, "private"))
	d.Flag("diego_custom_stacks", true)

	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		t.Fatal(err)
	}
	const denied, incomplete = "the registry refuses access", "must include 'username' and 'password'"
	right, wrong := e2e.Doc{"username": e2e.RegistryUser, "password": e2e.RegistryPassword}, e2e.Doc{"username": e2e.RegistryUser, "password": "wrong"}
	cases := []struct {
		name        string
		credentials e2e.Doc
		fault       string // "" for none
	}{
		{"none", e2e.Doc{}, denied},
		{"wrong", e2e.Doc{r.Host: wrong}, denied},
		{"token only", e2e.Doc{r.Host: e2e.Doc{"token": e2e.RegistryPassword}}, denied},
		{"of another registry", e2e.Doc{"registry.example.com": right}, denied},
		{"password alone", e2e.Doc{r.Host: e2e.Doc{"password": e2e.RegistryPassword}}, incomplete},
		{"right", e2e.Doc{r.Host: right}, ""},
		{"right, and a token", e2e.Doc{r.Host: e2e.Doc{"username": e2e.RegistryUser, "password": e2e.RegistryPassword, "token": "x"}, "other": e2e.Doc{"token": "y"}}, ""},
		{"right, by host name", e2e.Doc{host: right}, ""},
		{"right, by a URL", e2e.Doc{"HTTPS://" + host + "/v2/": right}, ""},
		{"of another port", e2e.Doc{host + ":443": right}, denied},
		{"wrong, with the image here", e2e.Doc{r.Host: wrong}, denied},
	}
	app := imageApp{"private", "docker://" + r.Host + "/stacks/small:1", serveBuildpack(t)}
	dir := app.dir(t, nil)
	for _, c := range cases {
		app.writeManifest(t, dir, c.credentials)
		out, err := d.Run("push", dir)
		if (err == nil) != (c.fault == "") || !strings.Contains(out, c.fault) {
			t.Errorf("%s, by the manifest: got %v; want %q\n%s", c.name, err, c.fault, out)
		}
		for where, lifecycle := range map[string]e2e.Doc{
			"beside data": {"data": e2e.Doc{}, "credentials": c.credentials},
			"in data":     {"data": e2e.Doc{"credentials": c.credentials}},
		} {
			lifecycle["type"] = "buildpack"
			if got := restage(d, t, "private", lifecycle); (got == "") != (c.fault == "") || !strings.Contains(got, c.fault) {
				t.Errorf("%s, %s: got %q; want %q", c.name, where, got, c.fault)
			}
		}
	}
	both := e2e.Doc{"type": "buildpack", "data": e2e.Doc{"credentials": e2e.Doc{r.Host: right}}, "credentials": e2e.Doc{r.Host: right}}
	if got := restage(d, t, "private", both); !strings.Contains(got, "not both") {
		t.Errorf("both: got %q", got)
	}
	keepsSecret(d, t, "private")
}

// restage changes an app's lifecycle and stages it again. It returns the error of
// the one or the other.
func restage(d *e2e.Daemon, t *testing.T, app string, lifecycle e2e.Doc) string {
	t.Helper()
	if err := d.Client().Call(context.Background(), "PATCH", "/v3/apps/"+d.App(app), e2e.Doc{"lifecycle": lifecycle}, nil); err != nil {
		return err.Error()
	}
	return stage(d, t, app)
}

// keepsSecret looks for the password where an app is shown.
func keepsSecret(d *e2e.Daemon, t *testing.T, app string) {
	t.Helper()
	guid := d.App(app)
	for _, path := range []string{"/v3/apps/" + guid, "/v3/apps/" + guid + "/builds", "/v3/audit_events?target_guids=" + guid} {
		var shown any
		d.API("GET", path, nil, &shown)
		if text := fmt.Sprint(shown); strings.Contains(text, e2e.RegistryPassword) {
			t.Errorf("%s shows the password: %s", path, text)
		}
	}
	if text := d.Log.String(); strings.Contains(text, e2e.RegistryPassword) {
		t.Errorf("the daemon's log shows the password:\n%s", text)
	}
}
