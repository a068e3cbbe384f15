package rootfs

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/registry/registrytest"
	"cupola/rootfs/stack"
	"cupola/runtime/users"
)

// moveImages brings the files of a store's images to another one, as a backup does.
func moveImages(t *testing.T, from *Store, k *Kept, to *Store) {
	t.Helper()
	records := t.TempDir()
	for _, i := range k.Images {
		if err := from.Images.Link(i.Digest, records, to.store.Path("oci")); err != nil {
			t.Fatal(err)
		}
	}
	names, err := filepath.Glob(filepath.Join(records, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := to.Images.Restore(t.Context(), read(t, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestImagesAreRestored restores images with their references and repositories
// while no registry answers.
func TestImagesAreRestored(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s, to := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}}), newStore(t, Config{})
	ref, digest := reg.Push("team/app:v1", testImage(t, nil))
	other, _ := reg.Push("team/other:v1", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "etc/other=x")))
	for _, r := range []reference.Reference{ref, other} {
		if _, err := s.Images.Pull(t.Context(), r, image.PullOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	k, err := s.Keep(func(d string) bool { return d == digest })
	if err != nil || len(k.Images) != 1 {
		t.Fatalf("got %+v, %v; want the one that is needed", k, err)
	}
	if _, err := s.Images.GC(t.Context(), image.Policy{All: true, Grace: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.store.Path("oci", strings.TrimPrefix(digest, "sha256:"))); err != nil {
		t.Errorf("what is held was collected: %v", err)
	}
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	moveImages(t, s, k, to)
	k.Release()
	if i, err := to.Images.Find(ref.String()); err != nil || i.Digest != digest {
		t.Errorf("got %+v, %v; want it by its reference", i, err)
	}
	inRoot(t, to, ref.WithDigest(digest).String(), func(root string) { checkImported(t, "restored", root) })
}

// TestImagesAreNotRestoredOfLess holds that an image that lacks a layer leaves no half of it.
func TestImagesAreNotRestoredOfLess(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{})
	record, err := json.Marshal(image.Image{Reference: "docker://reg.io/a", Digest: "sha256:" + strings.Repeat("a", 64)})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(record), "{", `{"Reference":"docker://reg.io/a","Digest":"../../etc"}`, `{"Reference":"no:such","Digest":""}`} {
		if err := s.Images.Restore(t.Context(), []byte(text)); err == nil {
			t.Errorf("%s: it was restored", text)
		}
	}
	if all, err := s.Images.List(); err != nil || len(all) > 0 {
		t.Errorf("got %v, %v; want none", all, err)
	}
}

// TestStacksAreRestored holds that a stack's files have the content, modes, links and owners they had.
func TestStacksAreRestored(t *testing.T) {
	needRoot(t)
	ids := users.Range{Base: 1 << 20, Size: 1 << 16}
	s, to := newStore(t, Config{IDs: ids}), newStore(t, Config{IDs: users.Range{Base: 1 << 21, Size: 1 << 16}})
	archive := writeFile(t, "root.tar", registrytest.Tar(t, "etc/os-release=ID=x", "bin/tool=#!"))
	if _, err := s.Stacks.Import(t.Context(), "mine", "like-this", archive, nil); err != nil {
		t.Fatal(err)
	}
	tree := s.store.Path("stacks", "mine", "fs")
	file := filepath.Join(tree, "bin", "tool")
	err := errors.Join(os.Chmod(file, 0o755|os.ModeSetuid), os.Link(file, filepath.Join(tree, "bin", "twin")), os.Symlink("tool", filepath.Join(tree, "bin", "link")),
		os.Chown(filepath.Join(tree, "etc", "os-release"), int(ids.Base)+42, int(ids.Base)))
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.Keep(func(string) bool { return false })
	if err != nil || len(k.Stacks) != 1 {
		t.Fatalf("got %+v, %v; want the one stack that is not every store's", k, err)
	}
	defer k.Release()
	if err := s.Stacks.Remove("mine"); err == nil {
		t.Error("a stack was removed that is held")
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "fs.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Stacks.SaveTree(t.Context(), "mine", out), out.Close()); err != nil {
		t.Fatal(err)
	}
	if err := to.Stacks.Restore(t.Context(), k.Stacks[0], []byte("{}"), out.Name()); err != nil {
		t.Fatal(err)
	}
	if st, _ := to.Stacks.Get("mine"); st.Compat != "like-this" || st.Origin != "root.tar" || st.Digest != k.Stacks[0].Digest {
		t.Errorf("got %+v", st)
	}
	there := to.store.Path("stacks", "mine", "fs")
	info, err := os.Stat(filepath.Join(there, "bin", "tool"))
	if err != nil || info.Mode() != 0o755|os.ModeSetuid || info.Sys().(*syscall.Stat_t).Nlink != 2 {
		t.Errorf("got %v, %v", info, err)
	}
	if uid, _ := ownerOf(t, filepath.Join(there, "etc", "os-release")); uid != 1<<21+42 {
		t.Errorf("got the owner %d", uid)
	}
	if link, err := os.Readlink(filepath.Join(there, "bin", "link")); link != "tool" {
		t.Errorf("got %q, %v", link, err)
	}
	if lock, err := to.Stacks.Lock("mine"); string(lock) != "{}" {
		t.Errorf("got %q, %v", lock, err)
	}
}

// TestAHostileStackIsNotRestored holds that what leads out of a stack is refused.
func TestAHostileStackIsNotRestored(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{})
	st := stack.Saved{Stack: stack.Stack{Name: "evil"}, HasTree: true}
	if err := s.Stacks.Restore(t.Context(), st, nil, writeFile(t, "fs.tar", registrytest.Tar(t, "../../evil=x"))); err == nil {
		t.Error("it was restored")
	}
	if _, ok := s.Stacks.Get("evil"); ok {
		t.Error("half of it stayed")
	}
	if err := s.Stacks.Restore(t.Context(), stack.Saved{Stack: stack.Stack{Name: "../evil"}, HasTree: true}, nil, "none"); err == nil {
		t.Error("a name that leads out was taken")
	}
}
