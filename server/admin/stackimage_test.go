package admin

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"cupola/server/admin/stack"
	"cupola/server/admin/steps"
	"cupola/store"
	"cupola/store/cf"
)

// loopbackImage starts a registry that has an image and returns the image's
// reference and digest.
func loopbackImage(t *testing.T) (ref, digest string) {
	t.Helper()
	return loopbackImageOf(t, "etc/motd", []byte("hello"))
}

func loopbackImageOf(t *testing.T, file string, content []byte) (ref, digest string) {
	t.Helper()
	reg := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(reg.Close)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := errors.Join(w.WriteHeader(&tar.Header{Name: file, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}), second(w.Write(content)), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	short := strings.TrimPrefix(reg.URL, "http://") + "/team/stack:v1"
	tag, err := name.NewTag(short)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img); err != nil {
		t.Fatal(err)
	}
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return short, hash.String()
}

func second[T any](_ T, err error) error { return err }

// TestImagesThroughDaemon pulls, shows, exports and collects an image as the
// commands do.
func TestImagesThroughDaemon(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	d := startDaemon(t)
	ref, digest := loopbackImage(t)
	var quiet steps.Func
	if _, err := d.pulled(t, stack.PullRequest{Reference: ref + "x"}, quiet); err == nil || !strings.Contains(err.Error(), "no such image") {
		t.Errorf("got %v; want that there is no such image", err)
	}
	var told []steps.Step
	info, err := d.pulled(t, stack.PullRequest{Reference: ref}, func(s steps.Step) { told = append(told, s) })
	if err != nil || info.Digest != digest || len(told) == 0 || told[0].Step != "layer" {
		t.Fatalf("got %+v, %v and told %+v; want %s", info, err, told, digest)
	}
	checkFallbacks(t, d, ref)
	if info, err = d.pulled(t, stack.PullRequest{Reference: "docker://" + ref, Name: "mine", Compat: "cflinuxfs4"}, quiet); err != nil || info.Name != "mine" || info.Compat != "cflinuxfs4" {
		t.Fatalf("got %+v, %v; want the stack mine", info, err)
	}
	if names := rows(t, d); !slices.Contains(names, "mine") {
		t.Errorf("got %q in the API; want mine among them", names)
	}
	for _, by := range []string{ref, "docker://" + ref, digest, "mine"} {
		if i, err := d.inspected(t, by); err != nil || i.Image.Digest != digest || i.Image.Pinned || i.Image.Arch != runtime.GOARCH {
			t.Errorf("%s: got %+v, %v; want %s", by, i, err, digest)
		}
	}
	layout := filepath.Join(t.TempDir(), "layout")
	if _, err := StackExport.Do(t.Context(), d.target, stack.ExportRequest{Name: ref, Path: layout}, quiet); err != nil {
		t.Error(err)
	}
	if _, err := d.pulled(t, stack.PullRequest{Reference: "oci:" + layout}, quiet); err != nil {
		t.Error(err)
	}
	if _, err := d.removed(t, digest); err == nil || !strings.Contains(err.Error(), "the stack mine is made of") {
		t.Errorf("got %v; want that a stack is made of it", err)
	}
	if i, err := d.inspected(t, "mine"); err != nil || i.Stack.Name != "mine" || i.Image.Digest != digest || len(i.Users) > 0 {
		t.Errorf("got %+v, %v", i, err)
	}
	if r, err := d.removed(t, "mine"); err != nil || len(r.Images) > 0 {
		t.Errorf("got %+v, %v; want a stack removed", r, err)
	}
	checkCollected(t, d, digest)
	if _, err := d.pulled(t, stack.PullRequest{Reference: ref}, quiet); err != nil {
		t.Fatal(err)
	}
	if r, err := d.removed(t, ref); err != nil || len(r.Images) != 1 || r.Images[0].Digest != digest || r.Bytes == 0 {
		t.Errorf("got %+v, %v; want the image removed", r, err)
	}
}

// checkFallbacks holds that fallbacks are kept until they are forgotten, and
// that one that is down is reported.
func checkFallbacks(t *testing.T, d testDaemon, ref string) {
	t.Helper()
	const down = "127.0.0.1:1/team/stack:v1"
	for _, p := range []struct {
		fallbacks, want []string
		warnings        int
	}{{[]string{down}, []string{"docker://" + down}, 1}, {nil, []string{"docker://" + down}, 0}, {[]string{}, nil, 0}} {
		warnings := 0
		_, err := d.pulled(t, stack.PullRequest{Reference: ref, Fallbacks: p.fallbacks}, func(s steps.Step) {
			if s.Step == "warning" {
				warnings++
			}
		})
		if err != nil || warnings != p.warnings {
			t.Errorf("%q: got %v and %d warnings; want %d", p.fallbacks, err, warnings, p.warnings)
		}
		if i, err := d.inspected(t, ref); err != nil || !slices.Equal(i.Image.Fallbacks, p.want) {
			t.Errorf("%q: got %q, %v; want %q", p.fallbacks, i.Image.Fallbacks, err, p.want)
		}
	}
}

// checkCollected holds that an image goes when no droplet names it any longer.
func checkCollected(t *testing.T, d testDaemon, digest string) {
	t.Helper()
	if _, err := d.collected(t, stack.GCRequest{}); err == nil {
		t.Error("images were collected without a reason")
	}
	long := time.Now().Add(-time.Hour)
	record := d.Dir.Path("rootfs", "images", strings.TrimPrefix(digest, "sha256:")+".json")
	if err := os.Chtimes(record, long, long); err != nil {
		t.Fatal(err)
	}
	pinned := &cf.Droplet{State: cf.DropletStaged, Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack, Image: &cf.StackImage{Reference: "docker://example.com/team/stack@" + digest}}}
	write := func(do func(*store.Tx) error) {
		t.Helper()
		if err := d.Store.Write(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	write(func(tx *store.Tx) error {
		space, err := place(tx)
		if err != nil {
			return err
		}
		app := &cf.App{Name: "blog", SpaceGUID: space, State: "STOPPED", Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: "minifs"}}
		if err := store.Apps.Put(tx, app); err != nil {
			return err
		}
		pinned.AppGUID = app.GUID
		return store.Droplets.Put(tx, pinned)
	})
	if r, err := d.collected(t, stack.GCRequest{All: true}); err != nil || len(r.Images) > 0 {
		t.Errorf("got %v, %v; want what a droplet names to stay", r, err)
	}
	if i, err := d.inspected(t, digest); err != nil || !i.Image.Pinned {
		t.Errorf("got %+v, %v; want it pinned", i, err)
	}
	if _, err := d.removed(t, digest); err == nil || !strings.Contains(err.Error(), "is used by apps: cupola/dev/blog;") {
		t.Errorf("got %v; want that blog is on it", err)
	}
	if i, err := d.inspected(t, digest); err != nil || i.Stack != nil || !slices.Equal(i.Users, []string{"cupola/dev/blog"}) {
		t.Errorf("got %+v, %v", i, err)
	}
	write(func(tx *store.Tx) error { return store.Droplets.Delete(tx, pinned.GUID) })
	if r, err := d.collected(t, stack.GCRequest{All: true}); err != nil || len(r.Images) != 1 {
		t.Errorf("got %v, %v; want the image gone", r, err)
	}
	if all := d.listed(t).Images; len(all) > 0 {
		t.Errorf("got %v; want none", all)
	}
	if _, err := d.inspected(t, digest); err == nil || !strings.Contains(err.Error(), "there is no stack or image") {
		t.Errorf("got %v; want that it is gone", err)
	}
}
