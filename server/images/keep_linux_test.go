package images

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/rootfs"
	"cupola/runtime/durable"
	"cupola/runtime/users"
	"cupola/server/desire"
	"cupola/store/blob"
)

func newImages(t *testing.T) Images {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	dir := t.TempDir()
	roots, err := rootfs.New(rootfs.Config{Dir: filepath.Join(dir, "rootfs"), IDs: users.Range{Base: 1 << 20, Size: 1 << 16}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { roots.Close() })
	blobs, err := blob.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	blobs.Unpacked = roots.Layers
	return Images{Roots: roots, Blobs: blobs}
}

// keepDroplet keeps a droplet with a file, the same each time.
func keepDroplet(t *testing.T, i Images) (digest string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "droplet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	err = errors.Join(w.WriteHeader(&tar.Header{Name: "./app/", Typeflag: tar.TypeDir, Mode: 0o755}), w.WriteHeader(&tar.Header{Name: "./app/run", Mode: 0o755, Size: 5}))
	if _, e := w.Write([]byte("hello")); errors.Join(err, e, w.Close()) != nil {
		t.Fatal(err, e)
	}
	kept, err := i.Keep(t.Context(), desire.OutputDroplet, f, "")
	if err != nil {
		t.Fatal(err)
	}
	return kept.Digest
}

// TestWhole damages a droplet, while it is in use, and stages the same again.
func TestWhole(t *testing.T) {
	i := newImages(t)
	first := keepDroplet(t, i)
	if again := keepDroplet(t, i); again != first {
		t.Fatalf("got droplets %s and %s of the same files", first, again)
	}
	if err := i.Whole(t.Context(), first); err != nil {
		t.Error(err)
	}
	if err := i.Whole(t.Context(), strings.Repeat("0", 64)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is gone: got %v", err)
	}
	dir, _ := i.Roots.Layers.Kept(first)
	if err := os.WriteFile(filepath.Join(dir, "fs", "home", "vcap", "app", "run"), []byte("jello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := i.Whole(t.Context(), first); !errors.Is(err, durable.ErrDamaged) {
		t.Errorf("one that is damaged: got %v", err)
	}
	r, w := io.Pipe()
	used := make(chan error, 1)
	go func() { used <- i.Roots.Layers.WriteArchive(t.Context(), first, w) }()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	second := keepDroplet(t, i)
	if err := i.Whole(t.Context(), second); err != nil || second == first {
		t.Errorf("got droplet %s, %v; want another than %s", second, err, first)
	}
	r.Close()
	<-used
	if third := keepDroplet(t, i); third != first || i.Whole(t.Context(), first) != nil {
		t.Errorf("got droplet %s; want %s, once nothing uses the damaged files", third, first)
	}
}
