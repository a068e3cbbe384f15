package rootfs

import (
	"errors"
	"path/filepath"
	"testing"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/registry/registrytest"
	"cupola/rootfs/stack"
)

// TestExport holds that an image goes out with the digests it came with, and comes in again elsewhere.
func TestExport(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	ref, digest := reg.Push("team/app:v1", testImage(t, nil))
	dir := filepath.Join(t.TempDir(), "layout")
	if _, err := s.Images.Export(t.Context(), ref.String(), dir, nil); !errors.Is(err, image.ErrNotPulled) {
		t.Errorf("got %v; want ErrNotPulled", err)
	}
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stacks.AddImage(stack.Spec{Name: "mine"}, digest); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docker://" + reg.Host + "/team/app:v1", digest, ref.WithDigest(digest).String(), "mine", "preloaded:mine"} {
		if i, err := s.Images.Find(name); err != nil || i.Digest != digest {
			t.Errorf("%s: got %q, %v; want %q", name, i.Digest, err, digest)
		}
	}
	var done, total int64
	if _, err := s.Images.Export(t.Context(), "mine", dir, func(d, of int64) { done, total = d, of }); err != nil || done != total || done == 0 {
		t.Fatalf("got %v after %d of %d bytes", err, done, total)
	}
	if _, err := s.Images.Export(t.Context(), "mine", dir, nil); err == nil {
		t.Error("an export replaced what was there")
	}
	other := newStore(t, Config{})
	r, err := reference.Parse("oci:" + dir)
	if err != nil {
		t.Fatal(err)
	}
	img, err := other.Images.Pull(t.Context(), r, image.PullOptions{})
	if err != nil || img.Digest != digest {
		t.Fatalf("got %q, %v; want %q", img.Digest, err, digest)
	}
	inRoot(t, other, r.String(), func(root string) { checkImported(t, "exported", root) })
}
