package images

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// serveBuildpack gives the URL of ownBuildpack.
func serveBuildpack(t *testing.T) string {
	t.Helper()
	public, _ := e2e.NewOutside(t).Serve(t, e2e.Zipped(e2e.OwnBuildpack))
	return public + "/own.zip"
}

// imageApp is an app that is the Go example on an image, with a sidecar that
// says on what it runs.
type imageApp struct{ name, image, buildpack string }

// dir is a directory to push.
func (a imageApp) dir(t *testing.T, credentials e2e.Doc) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), e2e.HelloProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	a.writeManifest(t, dir, credentials)
	return dir
}

func (a imageApp) writeManifest(t *testing.T, dir string, credentials e2e.Doc) {
	t.Helper()
	teller := e2e.Doc{"name": "teller", "process_types": []string{"web"}, "command": "echo sidecar on $(cat /etc/os-release); exec sleep 1000"}
	app := e2e.Doc{"name": a.name, "memory": "64M", "disk_quota": "128M", "stack": a.image, "buildpacks": []string{a.buildpack}, "sidecars": []e2e.Doc{teller}}
	if len(credentials) > 0 {
		app["cnb-credentials"] = credentials
	}
	e2e.WriteManifest(t, dir, app)
}

// credentialsOf are the right ones of a registry, as manifests and lifecycles have them.
func credentialsOf(r *e2e.ImageRegistry) e2e.Doc {
	return e2e.Doc{r.Host: e2e.Doc{"username": e2e.RegistryUser, "password": e2e.RegistryPassword}}
}

// TestAnImageAsTheStack pushes onto an image of a private registry by a
// buildpack of the user's, and shows that what was staged on it needs the
// registry no longer.
func TestAnImageAsTheStack(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) *e2e.ImageRegistry{"go-containerregistry": e2e.StartTLSRegistry, "debian": startDebianRegistry} {
		t.Run(name, func(t *testing.T) {
			binary := e2e.NeedBinary(t)
			r := start(t)
			imageAsTheStack(t, e2e.StartDaemon(t, binary, "--registry-ca", r.CA), r)
		})
	}
}

func imageAsTheStack(t *testing.T, d *e2e.Daemon, r *e2e.ImageRegistry) {
	first := r.Push(t, "1", v1.Config{}, e2e.SmallStack(t, "first"))
	image := "docker://" + r.Host + "/stacks/small:1"
	d.Flag("diego_custom_stacks", true)
	dir := imageApp{"on-image", image, serveBuildpack(t)}.dir(t, credentialsOf(r))
	push := func(instances int, osName, digest string) {
		t.Helper()
		if out, err := d.Run("push", dir); err != nil {
			t.Fatalf("push: %v\n%s", err, out)
		}
		d.Running("on-image", "web", instances)
		d.Answers("on-image", "hello from on-image")
		d.Logged("on-image", "staged on NAME="+osName)
		d.Logged("on-image", "sidecar on NAME="+osName)
		d.Tells(t, "on-image", "cat /etc/os-release", "NAME="+osName)
		standsOn(d, t, digest)
	}
	push(1, "first", first)
	d.Logged("on-image", "Pulling stack "+image)

	// The tag moves, and the daemon dies: nothing of the app changes, nor asks
	// for anything.
	second := r.Push(t, "1", v1.Config{}, e2e.SmallStack(t, "second"))
	asked := r.Asked(t)
	d.Kill()
	d.Start()
	livesOn(d, t, "on-image", first)
	d.Tells(t, "on-image", "cat /etc/os-release", "NAME=first")
	if now := r.Asked(t); now != asked {
		t.Errorf("got %d requests of the registry; want none", now-asked)
	}

	push(5, "second", second)
	d.Logged("on-image", "WARNING: the stack "+image+" has moved")
	d.ScaleTo("on-image", 1)

	// The image goes, then the registry, then the daemon.
	r.Remove(t, second)
	knocks := r.Vanish(t)
	d.Kill()
	d.Start()
	livesOn(d, t, "on-image", second)
	d.Tells(t, "on-image", "cat /etc/os-release", "NAME=second")
	if n := knocks.Load(); n != 0 {
		t.Errorf("got %d connections to a registry that is gone; want none", n)
	}
	if out, err := d.Run("push", dir); err == nil || knocks.Load() == 0 {
		t.Errorf("a push without the registry: got %v, %d connections; want it tried in vain\n%s", err, knocks.Load(), out)
	}
	d.Running("on-image", "web", 5)
	standsOn(d, t, second)
	d.Deleted("on-image")
	emptied(d, t)
}

// livesOn scales an app's one instance to five, restarts them and crashes one:
// all come back on the image with the digest.
func livesOn(d *e2e.Daemon, t *testing.T, app, digest string) {
	t.Helper()
	d.ScaleTo(app, 5)
	standsOn(d, t, digest)
	d.API("POST", "/v3/apps/"+d.App(app)+"/actions/restart", nil, nil)
	before := map[string]bool{}
	for _, i := range d.Running(app, "web", 5) {
		before[i.InstanceGUID] = true
	}
	d.Answers(app, "hello from "+app)
	if _, _, err := d.Get(app+".localhost", "/crash"); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, time.Minute, func() string {
		now := d.Running(app, "web", 5)
		if slices.ContainsFunc(now, func(i e2e.Instance) bool { return !before[i.InstanceGUID] }) {
			return ""
		}
		return "the crashed instance was not replaced"
	})
	standsOn(d, t, digest)
}

// roots are the records of what containers' roots are made of.
func roots(d *e2e.Daemon, t *testing.T) []string {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(d.Dir, "rootfs", "run", "*", "root.json"))
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// emptied waits until no container has a root.
func emptied(d *e2e.Daemon, t *testing.T) {
	t.Helper()
	e2e.Eventually(t, time.Minute, func() string { return strings.Join(roots(d, t), " ") })
}

// standsOn waits until the roots of all containers are made of one image.
func standsOn(d *e2e.Daemon, t *testing.T, digest string) {
	t.Helper()
	e2e.Eventually(t, time.Minute, func() string {
		records := roots(d, t)
		if len(records) == 0 {
			return "there is no root"
		}
		for _, file := range records {
			text, err := os.ReadFile(file)
			if os.IsNotExist(err) {
				continue // it has ended
			}
			var root struct{ Stack string }
			if err := json.Unmarshal(text, &root); err != nil || !strings.HasSuffix(root.Stack, "@"+digest) {
				return fmt.Sprintf("got a root of %q, %v; want the digest %s", root.Stack, err, digest)
			}
		}
		return ""
	})
}

// TestAnImageThatLeftTheCache starts apps whose image is in a private registry and no longer on this machine: containers are created
// with the credentials that the app, or the docker package, has (RFC-0046: ImageUsername and ImagePassword).
func TestAnImageThatLeftTheCache(t *testing.T) {
	t.Parallel()
	binary, r := e2e.NeedBinary(t), e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, binary, "--registry-ca", r.CA)
	d.Flag("diego_custom_stacks", true)
	d.Flag("diego_docker", true)
	stack := r.Push(t, "stack", v1.Config{}, e2e.SmallStack(t, "stack"))
	hello := r.Push(t, "hello", v1.Config{Entrypoint: []string{"/hello"}},
		e2e.SmallStack(t, "docker"), e2e.LayerOf(t, e2e.TarEntry{Header: tar.Header{Name: "hello", Mode: 0o755}, Content: e2e.HelloProgram(t)}))
	dir := imageApp{"on-image", "docker://" + r.Host + "/stacks/small:stack", serveBuildpack(t)}.dir(t, credentialsOf(r))
	if out, err := d.Run("push", dir); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	if fault := d.PushDocker(t, "an-image", r.Host+"/stacks/small:hello", e2e.RegistryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.Running("an-image", "web", 1)
	stop := func(app string) { d.API("POST", "/v3/apps/"+d.App(app)+"/actions/stop", nil, nil) }
	stop("on-image")
	stop("an-image")
	for app, digest := range map[string]string{"on-image": stack, "an-image": hello} {
		emptied(d, t)
		d.Kill()
		for _, of := range []string{"images", "oci", "chains"} {
			if err := os.RemoveAll(filepath.Join(d.Dir, "rootfs", of)); err != nil {
				t.Fatal(err)
			}
		}
		d.Start()
		d.RestartApp(app)
		standsOn(d, t, digest)
		d.Tells(t, app, "echo a task runs", "a task runs")
		stop(app)
	}
	keepsSecret(d, t, "on-image")
}
