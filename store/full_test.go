package store

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"cupola/store/cf"
)

// smallDisk mounts a tmpfs of a size, with a function that takes all that is
// free of it, and one that gives it back.
func smallDisk(t *testing.T, size string) (dir string, fill, free func()) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("needs root for a small file system:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	fill = func() {
		t.Helper()
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for {
			if _, err := f.Write(make([]byte, 4096)); errors.Is(err, syscall.ENOSPC) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir, fill, func() {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
}

// openSmall opens a store on a disk of 8 MB.
func openSmall(t *testing.T) (s *Store, fill, free func()) {
	t.Helper()
	dir, fill, free := smallDisk(t, "8m")
	s, err := Open(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, fill, free
}

// TestOpenOnAFullDisk opens a database for which there is no room to note who
// reads: what is in it can be read, nothing can be written, and nothing is lost.
func TestOpenOnAFullDisk(t *testing.T) {
	dir, fill, free := smallDisk(t, "16m")
	config := Config{Dir: filepath.Join(dir, "db"), Log: slog.New(slog.DiscardHandler)}
	insert := func(s *Store, name string) error {
		return s.Write(t.Context(), func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Name: name}) })
	}
	s, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(insert(s, "before"), s.Close()); err != nil {
		t.Fatal(err)
	}
	fill()
	if s, err = Open(config); err != nil {
		t.Fatalf("open on a full disk: %v", err)
	}
	if err := insert(s, "refused"); !errors.Is(err, ErrFull) {
		t.Errorf("got %v; want ErrFull", err)
	}
	free()
	if err := insert(s, "after"); err != nil {
		t.Error(err)
	}
	orgs, err := names(t, s)
	if err != nil || !slices.Equal(orgs, []string{"before", "after"}) {
		t.Errorf("got %v, %v; want before and after", orgs, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func names(t *testing.T, s *Store) (all []string, err error) {
	return all, s.Read(t.Context(), func(tx *Tx) error {
		orgs, err := Orgs.All(tx)
		for _, o := range orgs {
			all = append(all, o.Name)
		}
		return err
	})
}
