package main

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"go.yaml.in/yaml/v3"
)

// ownBuildpack is what its URL leads to: it says on what it staged, and has the
// app's program started.
var ownBuildpack = map[string]string{
	"bin/detect":   "#!/bin/sh\n",
	"bin/supply":   "#!/bin/sh\necho staged on $(cat /etc/os-release)\n",
	"bin/finalize": "#!/bin/sh\n",
	"bin/release":  "#!/bin/sh\necho '---\ndefault_process_types:\n  web: ./hello'\n",
}

// serveBuildpack gives the URL of ownBuildpack.
func serveBuildpack(t *testing.T) string {
	t.Helper()
	public, _ := newOutside(t).serve(t, zipped(ownBuildpack))
	return public + "/own.zip"
}

// zipped answers with a zip of executable files.
func zipped(files map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		z := zip.NewWriter(w)
		for name, script := range files {
			header := &zip.FileHeader{Name: name}
			header.SetMode(0o755)
			if f, err := z.CreateHeader(header); err == nil {
				fmt.Fprint(f, script)
			}
		}
		z.Close()
	}
}

// imageApp is an app that is the Go example on an image, with a sidecar that
// says on what it runs.
type imageApp struct{ name, image, buildpack string }

// dir is a directory to push.
func (a imageApp) dir(t *testing.T, credentials doc) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), helloProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	a.writeManifest(t, dir, credentials)
	return dir
}

func (a imageApp) writeManifest(t *testing.T, dir string, credentials doc) {
	t.Helper()
	teller := doc{"name": "teller", "process_types": []string{"web"}, "command": "echo sidecar on $(cat /etc/os-release); exec sleep 1000"}
	app := doc{"name": a.name, "memory": "64M", "disk_quota": "128M", "stack": a.image, "buildpacks": []string{a.buildpack}, "sidecars": []doc{teller}}
	if len(credentials) > 0 {
		app["cnb-credentials"] = credentials
	}
	writeManifest(t, dir, app)
}

func writeManifest(t *testing.T, dir string, app doc) {
	t.Helper()
	text, err := yaml.Marshal(doc{"applications": []doc{app}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// credentials are the right ones of a registry, as manifests and lifecycles have them.
func (r *imageRegistry) credentials() doc {
	return doc{r.host: doc{"username": registryUser, "password": registryPassword}}
}

// TestAnImageAsTheStack pushes onto an image of a private registry by a
// buildpack of the user's, and shows that what was staged on it needs the
// registry no longer.
func TestAnImageAsTheStack(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) *imageRegistry{"go-containerregistry": startTLSRegistry, "debian": startDebianRegistry} {
		t.Run(name, func(t *testing.T) {
			binary := needBinary(t)
			r := start(t)
			imageAsTheStack(t, startDaemon(t, binary, "--registry-ca", r.ca), r)
		})
	}
}

func imageAsTheStack(t *testing.T, d *daemon, r *imageRegistry) {
	first := r.push(t, "1", v1.Config{}, smallStack(t, "first"))
	image := "docker://" + r.host + "/stacks/small:1"
	d.flag("diego_custom_stacks", true)
	dir := imageApp{"on-image", image, serveBuildpack(t)}.dir(t, r.credentials())
	push := func(instances int, osName, digest string) {
		t.Helper()
		if out, err := d.run("push", dir); err != nil {
			t.Fatalf("push: %v\n%s", err, out)
		}
		d.running("on-image", "web", instances)
		d.answers("on-image", "hello from on-image")
		d.logged("on-image", "staged on NAME="+osName)
		d.logged("on-image", "sidecar on NAME="+osName)
		d.tells(t, "on-image", "cat /etc/os-release", "NAME="+osName)
		d.standsOn(t, digest)
	}
	push(1, "first", first)
	d.logged("on-image", "Pulling stack "+image)

	// The tag moves, and the daemon dies: nothing of the app changes, nor asks
	// for anything.
	second := r.push(t, "1", v1.Config{}, smallStack(t, "second"))
	asked := r.asked(t)
	d.kill()
	d.start()
	d.livesOn(t, "on-image", first)
	d.tells(t, "on-image", "cat /etc/os-release", "NAME=first")
	if now := r.asked(t); now != asked {
		t.Errorf("got %d requests of the registry; want none", now-asked)
	}

	push(5, "second", second)
	d.logged("on-image", "WARNING: the stack "+image+" has moved")
	d.scaleTo("on-image", 1)

	// The image goes, then the registry, then the daemon.
	r.remove(t, second)
	knocks := r.vanish(t)
	d.kill()
	d.start()
	d.livesOn(t, "on-image", second)
	d.tells(t, "on-image", "cat /etc/os-release", "NAME=second")
	if n := knocks.Load(); n != 0 {
		t.Errorf("got %d connections to a registry that is gone; want none", n)
	}
	if out, err := d.run("push", dir); err == nil || knocks.Load() == 0 {
		t.Errorf("a push without the registry: got %v, %d connections; want it tried in vain\n%s", err, knocks.Load(), out)
	}
	d.running("on-image", "web", 5)
	d.standsOn(t, second)
	d.deleted("on-image")
	d.emptied(t)
}

// livesOn scales an app's one instance to five, restarts them and crashes one:
// all come back on the image with the digest.
func (d *daemon) livesOn(t *testing.T, app, digest string) {
	t.Helper()
	d.scaleTo(app, 5)
	d.standsOn(t, digest)
	d.api("POST", "/v3/apps/"+d.app(app)+"/actions/restart", nil, nil)
	before := map[string]bool{}
	for _, i := range d.running(app, "web", 5) {
		before[i.InstanceGUID] = true
	}
	d.answers(app, "hello from "+app)
	if _, _, err := d.get(app+".localhost", "/crash"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string {
		now := d.running(app, "web", 5)
		if slices.ContainsFunc(now, func(i instance) bool { return !before[i.InstanceGUID] }) {
			return ""
		}
		return "the crashed instance was not replaced"
	})
	d.standsOn(t, digest)
}

// roots are the records of what containers' roots are made of.
func (d *daemon) roots(t *testing.T) []string {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(d.dir, "rootfs", "run", "*", "root.json"))
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// emptied waits until no container has a root.
func (d *daemon) emptied(t *testing.T) {
	t.Helper()
	eventually(t, 20*time.Second, func() string { return strings.Join(d.roots(t), " ") })
}

// standsOn waits until the roots of all containers are made of one image.
func (d *daemon) standsOn(t *testing.T, digest string) {
	t.Helper()
	eventually(t, 15*time.Second, func() string {
		records := d.roots(t)
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
