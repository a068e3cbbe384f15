package images

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

	"cupola/test/e2e"
)

// imageLine is where rendered objects name an image that was pushed.
var imageLine = regexp.MustCompile(`image: (\S+)/([a-z-]+)@(sha256:[0-9a-f]{64})`)

// renders renders an app with its image pushed to a registry, and gives the output and the image.
func renders(d *e2e.Daemon, app string, r *e2e.ImageRegistry, flags ...string) (out, image string) {
	d.T.Helper()
	d.T.Setenv("CUPOLA_REGISTRY_PASSWORD", e2e.RegistryPassword)
	out, err := d.Run(append([]string{"app", "render", app, "--registry", r.Host + "/team", "--registry-ca", r.CA, "--registry-username", e2e.RegistryUser}, flags...)...)
	if err != nil {
		d.T.Fatalf("render: %v\n%s", err, out)
	}
	m := imageLine.FindStringSubmatch(out)
	if m == nil || m[1] != r.Host+"/team" || m[2] != app || strings.Contains(out, e2e.RegistryPassword) {
		d.T.Fatalf("got no image by its digest, or a password:\n%s", out)
	}
	return out, m[1] + "/" + m[2] + "@" + m[3]
}

// configOf is an image's config.
func configOf(r *e2e.ImageRegistry, t *testing.T, image string) v1.Config {
	t.Helper()
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Image(ref, r.Options(t)...)
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
func pushProfiled(d *e2e.Daemon, app, stack string) {
	d.T.Helper()
	dir := d.T.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), e2e.HelloProgram(d.T.(*testing.T)), 0o755); err != nil {
		d.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".profile"), []byte("export FROM_PROFILE=profiled\n"), 0o644); err != nil {
		d.T.Fatal(err)
	}
	sidecars := e2e.Doc{"name": "teller", "process_types": []string{"web"}, "command": "echo sidecar of $FROM_PROFILE; exec sleep 1000", "memory": "16M"}
	e2e.WriteManifest(d.T.(*testing.T), dir, e2e.Doc{"name": app, "memory": "64M", "disk_quota": "128M", "stack": stack, "buildpacks": []string{"binary_buildpack"}, "command": profiledCommand, "sidecars": []e2e.Doc{sidecars}})
	if out, err := d.Run("push", dir); err != nil {
		d.T.Fatalf("push: %v\n%s", err, out)
	}
}

// TestAppBecomesAnImage pushes an app, renders it with its image in a private registry, and runs that image as an app here: it
// does what the app does. So for a stack that is a directory, and for one that is an image of the same registry.
func TestAppBecomesAnImage(t *testing.T) {
	binary, r := e2e.NeedBinary(t), e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, binary, "--registry-ca", r.CA)
	d.Flag("diego_docker", true)
	tree := filepath.Join(t.TempDir(), "root.tar")
	if err := os.WriteFile(tree, e2e.SmallStack(t, "tree"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Push(t, "base", v1.Config{}, e2e.SmallStack(t, "image"))
	t.Setenv("CUPOLA_REGISTRY_PASSWORD", e2e.RegistryPassword)
	for _, args := range [][]string{{"stack", "import", "tree", tree}, {"stack", "pull", r.Host + "/stacks/small:base", "--name", "image", "--username", e2e.RegistryUser}} {
		if out, err := d.Run(append(args, "--data-dir", d.Dir)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, stack := range []string{"tree", "image"} {
		t.Run(stack, func(t *testing.T) { becomesAnImage(d.On(t), t, stack, r) })
	}
	t.Run("faults", func(t *testing.T) { rendersNot(d.On(t), t, r) })
}

func becomesAnImage(d *e2e.Daemon, t *testing.T, stack string, r *e2e.ImageRegistry) {
	app, copied := "on-"+stack, "copy-of-"+stack
	pushProfiled(d, app, stack)
	d.Running(app, "web", 1)
	d.Answers(app, "hello from "+app)
	says := "/home/vcap/app /home/vcap/app vcap en_US.UTF-8 2000 profiled /home/vcap/deps on NAME=" + stack
	d.Logged(app, says)
	d.Tells(t, app, "id -u", "2000")

	out, image := renders(d, app, r)
	for _, want := range []string{"Pushed " + image, "name: web-teller", "echo sidecar of $FROM_PROFILE; exec sleep 1000", "memory: 16Mi", "memory: 48Mi", "warning /tasks/name="} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
	before := r.Asked(t)
	if _, again := renders(d, app, r); again != image {
		t.Errorf("got %s, and before %s: the same droplet is the same image", again, image)
	}
	if n := r.Asked(t) - before; n > 10 {
		t.Errorf("got %d requests for what is there already", n)
	}
	config := configOf(r, t, image)
	if config.User != "2000:2000" || config.WorkingDir != "/home/vcap" || config.Labels["org.cloudfoundry.app.guid"] != d.App(app) || config.Labels["org.cloudfoundry.stack.digest"] == "" {
		t.Errorf("got %+v", config)
	}

	if fault := d.PushDocker(t, copied, image, e2e.RegistryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.MapRoute(t, copied)
	d.Running(copied, "web", 1)
	d.Answers(copied, "hello from "+copied)
	d.Logged(copied, "Invoking pre-start scripts.")
	d.Logged(copied, says)
	d.Deleted(copied)
	d.Deleted(app)
}

// rendersNot holds what is said when an app cannot be rendered, or its image not be pushed.
func rendersNot(d *e2e.Daemon, t *testing.T, r *e2e.ImageRegistry) {
	pushProfiled(d, "app", "tree")
	d.API("POST", "/v3/apps", e2e.Doc{"name": "empty", "relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev"))}}, nil)
	d.API("POST", "/Users", e2e.Doc{"userName": "stranger", "password": "strange", "emails": []e2e.Doc{{"value": "stranger"}}}, nil)
	gone := e2e.StartTLSRegistry(t)
	proxy := breaksOff(gone, t)
	for name, c := range map[string]struct {
		args     []string
		password string
		want     string
	}{
		"no droplet":         {[]string{"empty"}, e2e.RegistryPassword, "app empty has no droplet: push it first"},
		"no app":             {[]string{"none"}, e2e.RegistryPassword, "there is no app none"},
		"not for a stranger": {[]string{"app", "--user", "stranger", "--password", "strange"}, e2e.RegistryPassword, "there is no app app"},
		"wrong password":     {[]string{"app", "--registry-username", e2e.RegistryUser}, "guessed", "the registry refuses access: there are no credentials for it, they are wrong, or they may not write there"},
		"no password":        {[]string{"app", "--registry-username", e2e.RegistryUser}, "", "no password for registry user " + e2e.RegistryUser},
		"nobody":             {[]string{"app"}, "", "the registry refuses access"},
		"no registry":        {[]string{"app", "--registry", "https://" + r.Host}, "", "--registry: "},
		"goes half way":      {[]string{"app", "--registry", proxy + "/team", "--registry-ca", gone.CA, "--registry-username", e2e.RegistryUser}, e2e.RegistryPassword, "the registry broke off"},
		"image and pushing":  {[]string{"app", "--image", "x"}, "", "can't be used together"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CUPOLA_REGISTRY_PASSWORD", c.password)
			t.Setenv("HOME", t.TempDir())
			args := []string{"app", "render", "--registry-ca", r.CA}
			if !strings.Contains(strings.Join(c.args, " "), "--registry ") {
				args = append(args, "--registry", r.Host+"/team")
			}
			out, err := d.Run(append(args, c.args...)...)
			if err == nil || !strings.Contains(out, c.want) || strings.Contains(out, "guessed") || strings.Contains(out, "kind:") {
				t.Errorf("got %v\n%s\nwant %q", err, out, c.want)
			}
		})
	}
	d.Deleted("app")
	d.Deleted("empty")
}

// breaksOff gives the host of a registry that takes a part of each layer, and then no more.
func breaksOff(r *e2e.ImageRegistry, t *testing.T) string {
	t.Helper()
	r.Spoil = func(w http.ResponseWriter, req *http.Request) bool {
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
	return r.Host
}
