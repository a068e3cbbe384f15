package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// privateRegistry is a registry that asks for a password, and counts requests.
type privateRegistry struct {
	*httptest.Server
	host     string
	requests atomic.Int64
}

const (
	registryUser     = "joe"
	registryPassword = "open sesame"
)

func startRegistry(t *testing.T) *privateRegistry {
	t.Helper()
	r := &privateRegistry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests.Add(1)
		if u, p, _ := req.BasicAuth(); u != registryUser || p != registryPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	r.host = strings.TrimPrefix(r.URL, "http://")
	return r
}

// smallStack is the layer of a small stack whose os-release has the name.
func smallStack(t *testing.T, osName string) []byte {
	t.Helper()
	helper, err := os.ReadFile(filepath.FromSlash("../../runtime/lifecycle/bin/lifecycle"))
	if err != nil {
		t.Fatal(err)
	}
	return layerOf(t, tarEntry{tar.Header{Name: "etc/os-release", Mode: 0o644}, []byte("NAME=" + osName + "\n")},
		tarEntry{tar.Header{Name: "bin/tools", Mode: 0o755}, helper},
		tarEntry{tar.Header{Name: "bin/sh", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil},
		tarEntry{tar.Header{Name: "bin/cat", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil},
		tarEntry{tar.Header{Name: "bin/id", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil},
		tarEntry{tar.Header{Name: "bin/sleep", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil})
}

type tarEntry struct {
	tar.Header
	content []byte
}

func layerOf(t *testing.T, entries ...tarEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.Size = int64(len(e.content))
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// push puts an image of layers under a tag.
func (r *privateRegistry) push(t *testing.T, tag string, config v1.Config, layers ...[]byte) {
	t.Helper()
	image := empty.Image
	for _, l := range layers {
		var err error
		if image, err = mutate.AppendLayers(image, static.NewLayer(l, types.DockerUncompressedLayer)); err != nil {
			t.Fatal(err)
		}
	}
	image, err := mutate.Config(image, config)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(r.host + "/stacks/small:" + tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithAuth(&authn.Basic{Username: registryUser, Password: registryPassword})); err != nil {
		t.Fatal(err)
	}
}

// onImage is an app's directory whose manifest asks for the image.
func onImage(t *testing.T, app, image, credentials string) string {
	t.Helper()
	dir := t.TempDir()
	manifest := fmt.Sprintf(`applications:
- name: %s
  memory: 64M
  disk_quota: 128M
  stack: %s
  buildpacks: [staticfile_buildpack]
  sidecars:
  - name: teller
    process_types: [web]
    command: echo sidecar on $(cat /etc/os-release); sleep 1000
%s`, app, image, credentials)
	for file, content := range map[string]string{"manifest.yml": manifest, "Staticfile": "root: public\n", "public/index.html": "hello from " + app} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func credentialsOf(host, text string) string {
	return fmt.Sprintf("  cnb-credentials:\n    %q: %s\n", host, text)
}

// TestAnImageAsTheStack pushes onto an image of a private registry, and shows
// that what was staged on it needs the registry no longer.
func TestAnImageAsTheStack(t *testing.T) {
	d := startDaemon(t, needBinary(t))
	r := startRegistry(t)
	r.push(t, "1", v1.Config{}, smallStack(t, "first"))
	image := "docker://" + r.host + "/stacks/small:1"
	right := credentialsOf(r.host, fmt.Sprintf("{username: %s, password: %s}", registryUser, registryPassword))

	refused := func(credentials, why string) {
		t.Helper()
		if out, err := d.run("push", onImage(t, "refused", image, credentials)); err == nil || !strings.Contains(out, why) {
			t.Errorf("push with %q: got %v; want it refused with %q\n%s", credentials, err, why, out)
		}
	}
	refused(right, "Feature Disabled: diego_custom_stacks")
	d.api("PATCH", "/v3/feature_flags/diego_custom_stacks", map[string]any{"enabled": true}, nil)
	const denied = "the registry refuses access"
	refused("", denied)
	refused(credentialsOf(r.host, "{username: joe, password: wrong}"), denied)
	refused(credentialsOf(r.host, "{token: secret}"), denied)
	refused(credentialsOf(r.host, "{password: alone}"), "must include 'username' and 'password'")

	push := func(instances int) {
		t.Helper()
		if out, err := d.run("push", onImage(t, "on-image", image, right)); err != nil {
			t.Fatalf("push: %v\n%s", err, out)
		}
		d.running("on-image", "web", instances)
		d.answers("on-image", "hello from on-image")
	}
	push(1)
	d.logged("on-image", "Pulling stack "+image)
	d.logged("on-image", "sidecar on NAME=first")
	d.tasks(t, "on-image", "NAME=first")

	// The tag moves, the registry goes, and the daemon dies: nothing of the app
	// changes, nor asks for anything.
	r.push(t, "1", v1.Config{}, smallStack(t, "second"))
	asked := r.requests.Load()
	d.kill()
	d.start()
	d.scaleTo("on-image", 5)
	d.api("POST", "/v3/apps/"+d.app("on-image")+"/actions/restart", nil, nil)
	d.running("on-image", "web", 5)
	d.tasks(t, "on-image", "NAME=first")
	if now := r.requests.Load(); now != asked {
		t.Errorf("got %d requests of the registry; want none", now-asked)
	}

	push(5)
	d.logged("on-image", "WARNING: the stack "+image+" has moved")
	d.logged("on-image", "sidecar on NAME=second")
	r.Close()
	d.api("POST", "/v3/apps/"+d.app("on-image")+"/actions/restart", nil, nil)
	d.running("on-image", "web", 5)
	d.deleted("on-image")
}

// tasks runs a task that tells what it runs on.
func (d *daemon) tasks(t *testing.T, app, want string) {
	t.Helper()
	said := fmt.Sprintf("task %d on ", time.Now().UnixNano())
	var task struct{ GUID string }
	d.api("POST", "/v3/apps/"+d.app(app)+"/tasks", map[string]any{"command": "echo " + said + "$(cat /etc/os-release)"}, &task)
	eventually(t, 30*time.Second, func() string {
		var now struct{ State string }
		d.api("GET", "/v3/tasks/"+task.GUID, nil, &now)
		if now.State == "SUCCEEDED" {
			return ""
		}
		return "the task is " + now.State
	})
	d.logged(app, said+want)
}
