package volume

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"cupola/rootfs/disk"
)

const owner = 0x6c000000 + 2000

// newStore gives a way to open the store of a new directory again and again.
func newStore(t *testing.T) (dir string, open func() *Store) {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	base := t.TempDir()
	dir = filepath.Join(base, "volumes")
	open = func() *Store {
		t.Helper()
		disks, err := disk.New(filepath.Join(base, "templates"), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Config{Dir: dir, Disks: disks, Root: owner - 2000, Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Teardown(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	return dir, open
}

func openVolume(t *testing.T, s *Store, name string) string {
	t.Helper()
	at, err := s.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestAVolumeOutlivesTheStore(t *testing.T) {
	_, open := newStore(t)
	s := open()
	if err := s.Create("db", Spec{Bytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	at := openVolume(t, s, "db")
	info, err := os.Stat(at)
	if err != nil || info.Mode().Perm() != 0o700 || info.Sys().(*syscall.Stat_t).Uid != owner {
		t.Fatalf("got %v, %v; want 0700 and its owner's", info, err)
	}
	if err := os.WriteFile(filepath.Join(at, "row"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Teardown(); err != nil { // as when the machine goes down
		t.Fatal(err)
	}
	s = open()
	if err := s.Create("db", Spec{Bytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(openVolume(t, s, "db"), "row"))
	if err != nil || string(got) != "1" {
		t.Fatalf("got %q, %v; want what was written", got, err)
	}
	if used, err := s.Used("db"); err != nil || used <= 0 {
		t.Errorf("got %d bytes, %v", used, err)
	}
	if err := errors.Join(s.Remove("db"), s.Remove("db")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open("db"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v; want that there is none", err)
	}
}

func TestAVolumeHoldsNoMoreThanItsSize(t *testing.T) {
	_, open := newStore(t)
	s := open()
	if m, why := s.cfg.Disks.Method(); m != disk.Loop {
		t.Skipf("disks are held by %s (%s), which spares root", m, why)
	}
	if err := s.Create("db", Spec{Bytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(openVolume(t, s, "db"), "big"), make([]byte, 20<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v; want no space", err)
	}
	err = os.WriteFile(filepath.Join(openVolume(t, s, "db"), "big"), make([]byte, 15<<20), 0o600)
	if err != nil {
		t.Errorf("got %v; want room for 15 of 16 MiB", err)
	}
}

// TestWhatACrashLeft has a volume half made and one half deleted.
func TestWhatACrashLeft(t *testing.T) {
	dir, open := newStore(t)
	s := open()
	if err := errors.Join(s.Create("half", Spec{Bytes: 32 << 20}), os.Remove(filepath.Join(dir, "half", whole)), os.MkdirAll(filepath.Join(dir, trash+"x", "y"), 0o700)); err != nil {
		t.Fatal(err)
	}
	s = open()
	if _, err := s.Open("half"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v; want no half volume", err)
	}
	if err := s.Create("half", Spec{Bytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	if names, err := s.List(); err != nil || !slices.Equal(names, []string{"half"}) {
		t.Errorf("got %v, %v", names, err)
	}
	if _, err := os.Stat(filepath.Join(dir, trash+"x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v; want it deleted", err)
	}
}

func TestNamesLeadNowhereElse(t *testing.T) {
	s := &Store{cfg: Config{Dir: t.TempDir()}}
	for _, name := range []string{"", "..", "a/b", ".hidden", "a b", "-x"} {
		if err := s.Create(name, Spec{Bytes: 1 << 20}); err == nil {
			t.Errorf("%q was taken", name)
		}
		if err := s.Remove(name); err == nil {
			t.Errorf("%q was removed", name)
		}
	}
}
