package rootfs

import (
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/rootfs/image"
	"cupola/rootfs/layer"
	"cupola/rootfs/registry"
	"cupola/rootfs/registry/registrytest"
	"cupola/rootfs/root"
	"cupola/rootfs/tree"
)

// TestUnusedImages holds that what is said of unused images is what their removal gives
// back, though they share layers with each other and with one that stays.
func TestUnusedImages(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	base := registrytest.Tar(t, "base="+registrytest.Noise(9, 300_000))
	shared := registrytest.Tar(t, "shared="+registrytest.Noise(8, 200_000))
	digest := map[string]string{}
	for n, name := range []string{"kept", "old", "older"} {
		layers := [][]byte{base, shared, registrytest.Tar(t, "own="+registrytest.Noise(uint64(n), 100_000))}
		if name == "kept" {
			layers = layers[:1]
		}
		r, d := reg.Push(name, registrytest.Image(t, v1.Config{}, layers...))
		if _, err := s.Images.Pull(t.Context(), r, image.PullOptions{}); err != nil {
			t.Fatal(err)
		}
		digest[name] = d
	}
	age(t, s, digest["old"], 48*time.Hour)
	age(t, s, digest["older"], 72*time.Hour)
	size := func() int64 {
		t.Helper()
		n, err := tree.DiskBytes(t.Context(), s.store.Path("images"), s.store.Path("oci"), s.store.Path("chains"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	all, err := s.Images.Unused(t.Context(), image.Policy{All: true})
	if err != nil || len(all) != 2 || all[0].Name != digest["older"] || all[1].Name != digest["old"] {
		t.Fatalf("got %+v, %v; want the two old ones, the older first", all, err)
	}
	if all[1].Bytes < all[0].Bytes+200_000 {
		t.Errorf("got %d and %d bytes; want that the shared layer goes with the last that has it", all[0].Bytes, all[1].Bytes)
	}
	for _, u := range all {
		before := size()
		if _, err := s.Images.GC(t.Context(), image.Policy{All: true, Keep: func(d string) bool { return d != u.Name }}); err != nil {
			t.Fatal(err)
		}
		if err := s.Emptied(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := before - size(); got != u.Bytes {
			t.Errorf("%s gave back %d bytes; want %d", u.Name, got, u.Bytes)
		}
	}
}

// TestUnusedLayers holds that layers that a container uses are neither listed nor
// removed.
func TestUnusedLayers(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{})
	used, unused := droplet(t, "used"), droplet(t, "unused")
	for id, l := range map[string]layer.Layer{"runs": used, "ended": unused} {
		if _, err := s.Mount(t.Context(), root.Request{ID: id, Stack: "minifs", Layers: []layer.Layer{l}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Unmount(t.Context(), "ended"); err != nil {
		t.Fatal(err)
	}
	keys, err := s.Layers.Keys([]layer.Layer{used, unused})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Layers.Unused(t.Context())
	if err != nil || len(all) != 1 || all[0].Name != keys[1] || all[0].Bytes == 0 {
		t.Fatalf("got %+v, %v; want %s alone", all, err, keys[1])
	}
	if err := s.Layers.Remove(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	all, err = s.Layers.Unused(t.Context())
	if _, gone := tree.ReadMark(s.store.Path(layer.Dir, keys[1])); err != nil || len(all) != 0 || gone == nil {
		t.Errorf("got %+v, %v left; want nothing", all, err)
	}
	if _, err := tree.ReadMark(s.store.Path(layer.Dir, keys[0])); err != nil {
		t.Errorf("the layer in use: %v", err)
	}
}
