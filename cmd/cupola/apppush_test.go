package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// imageLine is where rendered objects name an image that was pushed.
var imageLine = regexp.MustCompile(`image: (\S+)/([a-z-]+)@(sha256:[0-9a-f]{64})`)

// renders renders an app with its image pushed to a registry, and gives the output and the image.
func (d *daemon) renders(app string, r *imageRegistry, flags ...string) (out, image string) {
	d.t.Helper()
	d.t.Setenv("CUPOLA_REGISTRY_PASSWORD", registryPassword)
	out, err := d.run(append([]string{"app", "render", app, "--registry", r.host + "/team", "--registry-ca", r.ca, "--registry-username", registryUser}, flags...)...)
	if err != nil {
		d.t.Fatalf("render: %v\n%s", err, out)
	}
	m := imageLine.FindStringSubmatch(out)
	if m == nil || m[1] != r.host+"/team" || m[2] != app || strings.Contains(out, registryPassword) {
		d.t.Fatalf("got no image by its digest, or a password:\n%s", out)
	}
	return out, m[1] + "/" + m[2] + "@" + m[3]
}

// configOf is an image's config.
func (r *imageRegistry) configOf(t *testing.T, image string) v1.Config {
	t.Helper()
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Image(ref, r.options(t)...)
	if err != nil {
		t.Fatal(err)
	}
	file, err := got.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return file.Config
}

// profiledCommand is a start command that tells what the launcher did for it.
const profiledCommand = `echo "$PWD $HOME $USER $LANG $(id -u) $FROM_PROFILE $DEPS_DIR on $(cat /etc/os-release)"; exec ./hello`

// pushProfiled pushes an app with a profile script and a sidecar.
func (d *daemon) pushProfiled(app, stack string) {
	d.t.Helper()
	dir := d.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), helloProgram(d.t.(*testing.T)), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".profile"), []byte("export FROM_PROFILE=profiled\n"), 0o644); err != nil {
		d.t.Fatal(err)
	}
	beside := doc{"name": "teller", "process_types": []string{"web"}, "command": "echo sidecar of $FROM_PROFILE; exec sleep 1000", "memory": "16M"}
	writeManifest(d.t.(*testing.T), dir, doc{"name": app, "memory": "64M", "disk_quota": "128M", "stack": stack, "buildpacks": []string{"binary_buildpack"}, "command": profiledCommand, "sidecars": []doc{beside}})
	if out, err := d.run("push", dir); err != nil {
		d.t.Fatalf("push: %v\n%s", err, out)
	}
}

// TestAppBecomesAnImage pushes an app, renders it with its image in a private registry, and runs that image as an app here: it
// does what the app does. So for a stack that is a directory, and for one that is an image of the same registry.
func TestAppBecomesAnImage(t *testing.T) {
	binary, r := needBinary(t), startTLSRegistry(t)
	d := startDaemon(t, binary, "--registry-ca", r.ca)
	d.flag("diego_docker", true)
	tree := filepath.Join(t.TempDir(), "root.tar")
	if err := os.WriteFile(tree, smallStack(t, "tree"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.push(t, "base", v1.Config{}, smallStack(t, "image"))
	t.Setenv("CUPOLA_REGISTRY_PASSWORD", registryPassword)
	for _, args := range [][]string{{"stack", "import", "tree", tree}, {"stack", "pull", r.host + "/stacks/small:base", "--name", "image", "--username", registryUser}} {
		if out, err := d.run(append(args, "--data-dir", d.dir)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, stack := range []string{"tree", "image"} {
		t.Run(stack, func(t *testing.T) { d.on(t).becomesAnImage(t, stack, r) })
	}
	t.Run("faults", func(t *testing.T) { d.on(t).rendersNot(t, r) })
}

func (d *daemon) becomesAnImage(t *testing.T, stack string, r *imageRegistry) {
	app, copied := "on-"+stack, "copy-of-"+stack
	d.pushProfiled(app, stack)
	d.running(app, "web", 1)
	d.answers(app, "hello from "+app)
	says := "/home/vcap/app /home/vcap/app vcap en_US.UTF-8 2000 profiled /home/vcap/deps on NAME=" + stack
	d.logged(app, says)
	d.tells(t, app, "id -u", "2000")

	out, image := d.renders(app, r)
	for _, want := range []string{"Pushed " + image, "name: web-teller", "echo sidecar of $FROM_PROFILE; exec sleep 1000", "memory: 16Mi", "memory: 48Mi", "warning /tasks/name="} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
	before := r.asked(t)
	if _, again := d.renders(app, r); again != image {
		t.Errorf("got %s, and before %s: the same droplet is the same image", again, image)
	}
	if n := r.asked(t) - before; n > 10 {
		t.Errorf("got %d requests for what is there already", n)
	}
	config := r.configOf(t, image)
	if config.User != "2000:2000" || config.WorkingDir != "/home/vcap" || config.Labels["org.cloudfoundry.app.guid"] != d.app(app) || config.Labels["org.cloudfoundry.stack.digest"] == "" {
		t.Errorf("got %+v", config)
	}

	if fault := d.pushDocker(t, copied, image, registryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.mapRoute(t, copied)
	d.running(copied, "web", 1)
	d.answers(copied, "hello from "+copied)
	d.logged(copied, "Invoking pre-start scripts.")
	d.logged(copied, says)
	d.deleted(copied)
	d.deleted(app)
}

// rendersNot holds what is said when an app cannot be rendered, or its image not be pushed.
func (d *daemon) rendersNot(t *testing.T, r *imageRegistry) {
	d.pushProfiled("app", "tree")
	d.api("POST", "/v3/apps", doc{"name": "empty", "relationships": doc{"space": toOne(d.first("/v3/spaces?names=dev"))}}, nil)
	d.api("POST", "/Users", doc{"userName": "stranger", "password": "strange", "emails": []doc{{"value": "stranger"}}}, nil)
	gone := startTLSRegistry(t)
	proxy := gone.breaksOff(t)
	for name, c := range map[string]struct {
		args     []string
		password string
		want     string
	}{
		"no droplet":         {[]string{"empty"}, registryPassword, "app empty has no droplet: push it first"},
		"no app":             {[]string{"none"}, registryPassword, "there is no app none"},
		"not for a stranger": {[]string{"app", "--user", "stranger", "--password", "strange"}, registryPassword, "there is no app app"},
		"wrong password":     {[]string{"app", "--registry-username", registryUser}, "guessed", "the registry refuses access: there are no credentials for it, they are wrong, or they may not write there"},
		"no password":        {[]string{"app", "--registry-username", registryUser}, "", "no password for registry user " + registryUser},
		"nobody":             {[]string{"app"}, "", "the registry refuses access"},
		"no registry":        {[]string{"app", "--registry", "https://" + r.host}, "", "--registry: "},
		"goes half way":      {[]string{"app", "--registry", proxy + "/team", "--registry-ca", gone.ca, "--registry-username", registryUser}, registryPassword, "the registry broke off"},
		"image and pushing":  {[]string{"app", "--image", "x"}, "", "can't be used together"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CUPOLA_REGISTRY_PASSWORD", c.password)
			t.Setenv("HOME", t.TempDir())
			args := []string{"app", "render", "--registry-ca", r.ca}
			if !strings.Contains(strings.Join(c.args, " "), "--registry ") {
				args = append(args, "--registry", r.host+"/team")
			}
			out, err := d.run(append(args, c.args...)...)
			if err == nil || !strings.Contains(out, c.want) || strings.Contains(out, "guessed") || strings.Contains(out, "kind:") {
				t.Errorf("got %v\n%s\nwant %q", err, out, c.want)
			}
		})
	}
	d.deleted("app")
	d.deleted("empty")
}

// breaksOff gives the host of a registry that takes a part of each layer, and then no more.
func (r *imageRegistry) breaksOff(t *testing.T) string {
	t.Helper()
	r.spoil = func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodPatch {
			return false
		}
		var some [1 << 10]byte
		_, _ = req.Body.Read(some[:])
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			c.Close()
		}
		return true
	}
	return r.host
}
