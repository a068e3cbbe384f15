package packed

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cupola/rootfs/internal/store"
	"cupola/rootfs/pack"
)

// TestPackOnAFullDisk has no room for a layer: it does not begin where it knows,
// and leaves nothing where it does not.
func TestPackOnAFullDisk(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	s := &Images{store: &store.Store{Dir: t.TempDir()}}
	if err := os.Mkdir(s.store.Path(Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", s.store.Path(Dir), "tmpfs", 0, "size=200k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(s.store.Path(Dir), 0); err != nil {
			t.Error(err)
		}
	})
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise)
	tree := t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "noise"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	nothing := func(string, int64, int64) {}
	begun := false
	_, err := s.packLayer(t.Context(), "stack mine", 1<<20, func(io.Writer) error { begun = true; return nil }, nothing)
	if err == nil || begun || !strings.Contains(err.Error(), "has 0.2 MB free; stack mine, packed, takes 0.3 MB") {
		t.Errorf("got %v, begun %v; want that there is no room", err, begun)
	}
	for name, total := range map[string]int64{"of unknown size": 0, "that looks small enough": 400_000} {
		_, err := s.packLayer(t.Context(), name, total, func(w io.Writer) error {
			return pack.Tree(context.Background(), tree, pack.Options{Layer: true}, w)
		}, nothing)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: got %v; want no space left", name, err)
		}
		if left, err := os.ReadDir(s.store.Path(Dir)); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}
