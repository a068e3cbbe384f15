package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/server"
)

func TestLayerProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &stackProgress{out: &out, started: now, last: map[string]server.StackStep{}, began: map[string]time.Time{}, now: func() time.Time { return now }}
	for _, s := range []struct {
		at          int // ms
		detail      string
		done, total int64
	}{
		{0, "1 of 2 fetch", 0, 40e6}, {10, "2 of 2 fetch", 1e6, 5e6}, {200, "2 of 2 fetch", 5e6, 5e6}, {6000, "1 of 2 fetch", 20e6, 40e6},
		{9000, "1 of 2 fetch", 40e6, 40e6}, {12000, "1 of 2 unpack", 10e6, 40e6}, {13000, "1 of 2 here", 40e6, 40e6}, {13500, "2 of 2 here", 5e6, 5e6},
	} {
		now = time.Unix(0, 0).Add(time.Duration(s.at) * time.Millisecond)
		p.step(server.StackStep{Step: "layer", Detail: s.detail, Done: s.done, Total: s.total})
	}
	const want = `  layer      1 of 2 fetch    [                    ]   0 %  0 B
  layer      1 of 2 fetch    [==========          ]  50 %  20 MB, 3.3 MB/s, 6 s left
  layer      1 of 2 unpack   [=====               ]  25 %  10 MB
  layer      1 of 2  40 MB
  layer      2 of 2  5.0 MB
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStackImages pulls, lists, exports and collects an image with a daemon
// that runs, and one with none.
func TestStackImages(t *testing.T) {
	d := startDaemon(t, needBinary(t))
	r := startRegistry(t)
	r.push(t, "1", v1.Config{User: "app"}, smallStack(t, "first"))
	image := r.host + "/stacks/small:1"
	t.Setenv("CUPOLA_REGISTRY_USERNAME", registryUser)
	t.Setenv("CUPOLA_REGISTRY_PASSWORD", "wrong")
	stack := func(want string, args ...string) string {
		t.Helper()
		out, err := d.run(append([]string{"stack"}, append(args, "--data-dir", d.dir)...)...)
		if (err != nil) != strings.HasPrefix(want, "cupola: ") || !strings.Contains(out, want) {
			t.Errorf("%q: got %v; want %q in\n%s", args, err, want, out)
		}
		return out
	}
	stack("cupola: ", "pull", image)
	t.Setenv("CUPOLA_REGISTRY_PASSWORD", registryPassword)
	stack("Pulled docker://"+image, "pull", image)
	stack("Pulled the stack small", "pull", image, "--name", "small")
	stack("stack small", "ls")
	stack(`"User": "app"`, "inspect", "small", "--json")
	for _, want := range []string{"user        app", "linux/" + runtime.GOARCH, "needed by   nothing"} {
		stack(want, "inspect", "small")
	}
	layout := filepath.Join(t.TempDir(), "layout")
	stack("Exported sha256:", "export", "small", layout)
	if _, err := os.Stat(filepath.Join(layout, "index.json")); err != nil {
		t.Error(err)
	}
	stack("Removed the stack small", "rm", "small")
	stack("Removed 0 images", "gc", "--all") // it was used just now
	stack("cupola: ", "rm", "nothing/there")
	stack("Removed the image docker://"+image, "rm", image)
	stack("Pulled docker://"+image, "pull", image)
	stack("cupola: say which", "gc")
	d.kill()
	r.stop()
	stack("docker://"+image, "ls")
	stack(`"User": "app"`, "inspect", image, "--json")
}

// TestStackFallback shows that an image that is published in two registries
// serves apps when the one they name is down, and that it stays as long as they
// need it.
func TestStackFallback(t *testing.T) {
	d := startDaemon(t, needBinary(t))
	one, two := startRegistry(t), startRegistry(t)
	layer := smallStack(t, "first")
	one.push(t, "1", v1.Config{}, layer)
	two.push(t, "1", v1.Config{}, layer)
	two.push(t, "other", v1.Config{}, smallStack(t, "other"))
	credentials := one.credentials()
	maps.Copy(credentials, two.credentials())
	text, err := json.Marshal(credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CUPOLA_REGISTRY_CREDENTIALS", string(text))
	stack := func(want string, args ...string) {
		t.Helper()
		out, err := d.run(append([]string{"stack"}, append(args, "--data-dir", d.dir)...)...)
		if (err != nil) != strings.HasPrefix(want, "cupola: ") || !strings.Contains(out, strings.TrimPrefix(want, "cupola: ")) {
			t.Errorf("%q: got %v; want %q in\n%s", args, err, want, out)
		}
	}
	image, second := one.host+"/stacks/small:1", two.host+"/stacks/small:1"
	stack("cupola: the fallback docker://"+two.host+"/stacks/small:other is sha256:", "pull", image, "--fallback", two.host+"/stacks/small:other")
	stack("warning    the fallback docker://127.0.0.1:1/a:latest was not looked at", "pull", image, "--fallback", second, "--fallback", "127.0.0.1:1/a")
	stack("fallbacks   docker://"+second, "inspect", image)
	stack("Removed the image docker://"+image, "rm", image)
	one.stop()
	d.flag("diego_custom_stacks", true)
	dir := imageApp{"on-image", "docker://" + image, serveBuildpack(t)}.dir(t, credentials)
	if out, err := d.run("push", dir); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.answers("on-image", "hello from on-image")
	d.logged("on-image", "took it from docker://"+second)
	stack("cupola: is used by apps: cupola/dev/on-image;", "rm", image)
	stack("needed by   cupola/dev/on-image", "inspect", image)
	d.deleted("on-image")
	d.emptied(t)
}
