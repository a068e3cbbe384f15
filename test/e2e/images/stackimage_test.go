package images

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// TestStackImages pulls, lists, exports and collects an image with a daemon
// that runs, and one with none.
func TestStackImages(t *testing.T) {
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	r := e2e.StartRegistry(t)
	r.Push(t, "1", v1.Config{User: "app"}, e2e.SmallStack(t, "first"))
	image := r.Host + "/stacks/small:1"
	t.Setenv("CUPOLA_REGISTRY_USERNAME", e2e.RegistryUser)
	t.Setenv("CUPOLA_REGISTRY_PASSWORD", "wrong")
	stack := func(want string, args ...string) string {
		t.Helper()
		out, err := d.Run(append([]string{"stack"}, append(args, "--data-dir", d.Dir)...)...)
		if (err != nil) != strings.HasPrefix(want, "cupola: ") || !strings.Contains(out, want) {
			t.Errorf("%q: got %v; want %q in\n%s", args, err, want, out)
		}
		return out
	}
	stack("cupola: ", "pull", image)
	t.Setenv("CUPOLA_REGISTRY_PASSWORD", e2e.RegistryPassword)
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
	stack("cupola: no images selected", "gc")
	d.Kill()
	r.Stop()
	stack("docker://"+image, "ls")
	stack(`"User": "app"`, "inspect", image, "--json")
}

// TestStackFallback shows that an image that is published in two registries
// serves apps when the one they name is down, and that it stays as long as they
// need it.
func TestStackFallback(t *testing.T) {
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	one, two := e2e.StartRegistry(t), e2e.StartRegistry(t)
	layer := e2e.SmallStack(t, "first")
	one.Push(t, "1", v1.Config{}, layer)
	two.Push(t, "1", v1.Config{}, layer)
	two.Push(t, "other", v1.Config{}, e2e.SmallStack(t, "other"))
	credentials := credentialsOf(one)
	maps.Copy(credentials, credentialsOf(two))
	text, err := json.Marshal(credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CUPOLA_REGISTRY_CREDENTIALS", string(text))
	stack := func(want string, args ...string) {
		t.Helper()
		out, err := d.Run(append([]string{"stack"}, append(args, "--data-dir", d.Dir)...)...)
		if (err != nil) != strings.HasPrefix(want, "cupola: ") || !strings.Contains(out, strings.TrimPrefix(want, "cupola: ")) {
			t.Errorf("%q: got %v; want %q in\n%s", args, err, want, out)
		}
	}
	image, second := one.Host+"/stacks/small:1", two.Host+"/stacks/small:1"
	stack("cupola: the fallback docker://"+two.Host+"/stacks/small:other is sha256:", "pull", image, "--fallback", two.Host+"/stacks/small:other")
	stack("warning    the fallback docker://127.0.0.1:1/a:latest was not looked at", "pull", image, "--fallback", second, "--fallback", "127.0.0.1:1/a")
	stack("fallbacks   docker://"+second, "inspect", image)
	stack("Removed the image docker://"+image, "rm", image)
	one.Stop()
	d.Flag("diego_custom_stacks", true)
	dir := imageApp{"on-image", "docker://" + image, serveBuildpack(t)}.dir(t, credentials)
	if out, err := d.Run("push", dir); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.Answers("on-image", "hello from on-image")
	d.Logged("on-image", "took it from docker://"+second)
	stack("cupola: is used by apps: cupola/dev/on-image;", "rm", image)
	stack("needed by   cupola/dev/on-image", "inspect", image)
	d.Deleted("on-image")
	emptied(d, t)
}
