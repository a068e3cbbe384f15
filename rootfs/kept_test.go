package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/rootfs/layer"
	"cupola/rootfs/tree"
	"cupola/runtime/contract"
	"cupola/runtime/durable"
)

// keepDroplet keeps a droplet of an app with one file.
func keepDroplet(t *testing.T, s *Store, files ...file) layer.Layer {
	t.Helper()
	l, err := tryKeep(t, s, files...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func tryKeep(t *testing.T, s *Store, files ...file) (layer.Layer, error) {
	t.Helper()
	return tryKeepLike(t, s, nil, files...)
}

func tryKeepLike(t *testing.T, s *Store, like []string, files ...file) (layer.Layer, error) {
	t.Helper()
	name, _ := writeTgz(t, files...)
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := layer.Layer{Dest: contract.Home, UID: contract.VcapID, GID: contract.VcapID}
	l.Digest, _, err = s.Layers.Keep(t.Context(), f, l, like...)
	return l, err
}

var smallApp = []file{{"./app/", "", fs.ModeDir | 0o755}, {"./app/run", "#!/bin/sh\n", 0o755}, {"./staging_info.yml", "{}", 0o644}}

// keptFile is a file of a kept layer on the disk.
func keptFile(t *testing.T, s *Store, l layer.Layer, name string) string {
	t.Helper()
	dir, ok := s.Layers.Kept(l.Digest)
	if !ok {
		t.Fatal("it is not kept")
	}
	return filepath.Join(dir, tree.FS, contract.Home, name)
}

// TestAKeptLayerIsItsArchive makes the archive of a kept layer, which has the layer's digest and files, and does so after a
// restart.
func TestAKeptLayerIsItsArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newStore(t, Config{Dir: dir})
	l := keepDroplet(t, s, smallApp...)
	// The digests of droplets stand in rows: it must never change.
	if want := "38c82f0c5ce155fac133ff9e5ea722e55cd75795c4c4e3373d1adccae07dff6d"; l.Digest != want {
		t.Errorf("got the digest %s; want %s", l.Digest, want)
	}
	if m, err := s.Layers.Unpack(t.Context(), l); err != nil || m.Bytes != 12 || !m.Synced {
		t.Errorf("got %+v, %v; want the layer, on the disk", m, err)
	}
	again := newStore(t, Config{Dir: dir})
	var b bytes.Buffer
	if err := again.Layers.WriteArchive(t.Context(), l.Digest, &b); err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(b.Bytes()); hex.EncodeToString(sum[:]) != l.Digest {
		t.Error("the archive has another digest")
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uid != contract.VcapID || h.Name == "./app/run" && h.Mode != 0o755 {
			t.Errorf("%s has the owner %d and the mode %o", h.Name, h.Uid, h.Mode)
		}
	}
	if want := []string{"./app/", "./app/run", "./staging_info.yml"}; !slices.Equal(names, want) {
		t.Errorf("got %q; want %q", names, want)
	}
	if err := again.Layers.WriteArchive(t.Context(), strings.Repeat("0", 64), io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for no layer", err)
	}
}

// TestAKeptLayerForAnotherOwner unpacks what another user's containers have, of the layer itself.
func TestAKeptLayerForAnotherOwner(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{})
	l := keepDroplet(t, s, smallApp...)
	l.UID, l.GID = 0, 0
	l.Archive, _ = s.Layers.Kept(l.Digest)
	m, err := s.Layers.Unpack(t.Context(), l)
	if err != nil || m.Kept || m.Bytes != 12 {
		t.Fatalf("got %+v, %v; want a further layer", m, err)
	}
	if got, err := os.ReadFile(s.store.Path(s.Layers.Tree(l), contract.Home, "app/run")); err != nil || string(got) != "#!/bin/sh\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestADamagedKeptLayer is refused, and replaced when the same is kept again.
func TestADamagedKeptLayer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := keepDroplet(t, newStore(t, Config{Dir: dir}), smallApp...)
	s := newStore(t, Config{Dir: dir}) // has not read it
	run := keptFile(t, s, l, "app/run")
	info, err := os.Stat(run)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(run, []byte("#!/bin/sj\n"), 0), os.Chtimes(run, time.Time{}, info.ModTime())); err != nil {
		t.Fatal(err)
	}
	if err := s.Layers.WriteArchive(t.Context(), l.Digest, io.Discard); !errors.Is(err, durable.ErrDamaged) {
		t.Errorf("its archive: got %v; want that it is damaged", err)
	}
	if _, err := s.Layers.Unpack(t.Context(), l); !errors.Is(err, durable.ErrDamaged) || !strings.Contains(err.Error(), l.Digest) {
		t.Errorf("a start: got %v; want that it is damaged, and its name", err)
	}
	keys, err := s.Layers.Keys([]layer.Layer{l})
	if err != nil {
		t.Fatal(err)
	}
	release := s.store.HoldNames(keys...)
	if _, err := tryKeep(t, s, smallApp...); !errors.Is(err, durable.ErrDamaged) {
		t.Errorf("in use: got %v; want that it is damaged", err)
	}
	release()
	keepDroplet(t, s, smallApp...)
	if _, err := s.Layers.Unpack(t.Context(), l); err != nil {
		t.Errorf("kept again: got %v", err)
	}
}

// TestAKeptLayerStays until no row names it, and for a grace.
func TestAKeptLayerStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newStore(t, Config{Dir: dir})
	l := keepDroplet(t, s, smallApp...)
	keepDroplet(t, s, smallApp...)
	if entries, err := os.ReadDir(s.store.Path(layer.Dir)); err != nil || len(entries) != 1 {
		t.Fatalf("got %v, %v; want one layer", entries, err)
	}
	keys, err := s.Layers.Keys([]layer.Layer{l})
	if err != nil {
		t.Fatal(err)
	}
	if unused, err := s.Layers.Unused(t.Context()); err != nil || len(unused) > 0 {
		t.Errorf("got %v, %v; want nothing to reclaim", unused, err)
	}
	none, named := func(string) bool { return false }, func(digest string) bool { return digest == l.Digest }
	again := newStore(t, Config{Dir: dir})
	if err := errors.Join(s.Layers.Remove(t.Context(), keys), s.Layers.Prune(t.Context(), named, 0),
		s.Layers.Prune(t.Context(), none, time.Hour), again.Layers.Prune(t.Context(), none, time.Hour)); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Layers.AllKept(); err != nil || all[l.Digest] == "" {
		t.Errorf("got %v, %v; want that it is there", all, err)
	}
	if err := s.Layers.Prune(t.Context(), none, 0); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Layers.Kept(l.Digest); ok {
		t.Error("it is there still")
	}
}

// TestWhatCannotBeKept leaves nothing.
func TestWhatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{})
	if _, err := tryKeep(t, s, file{"../evil", "x", 0o644}); !errors.Is(err, layer.ErrNotKept) {
		t.Errorf("got %v; want that the archive is stored itself", err)
	}
	l := keepDroplet(t, s, smallApp...)
	dir, _ := s.Layers.Kept(l.Digest)
	m, err := tree.ReadMark(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Kept = false // as of an uploaded droplet of the same bytes
	if err := tree.WriteMark(dir, m); err != nil {
		t.Fatal(err)
	}
	if _, err := tryKeep(t, s, smallApp...); !errors.Is(err, layer.ErrNotKept) {
		t.Errorf("got %v; want that the archive is stored itself", err)
	}
	if entries, err := os.ReadDir(s.store.Path(layer.Dir)); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v left; want the one layer", entries, err)
	}
}
