package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWriteReplacesWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	// What a killed daemon left is neither in the way nor lends its mode.
	if err := os.WriteFile(name+".new", []byte("half of a much longer content"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"first", "2nd"} {
		if err := Write(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		info, serr := os.Stat(name)
		if err != nil || serr != nil || string(got) != content || info.Mode() != 0o600 {
			t.Errorf("got %q, %v, %v %v; want %q, 0600", got, info.Mode(), err, serr, content)
		}
	}
	if _, err := os.Stat(name + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("beside it stays %v", err)
	}
}

// TestWriteLeavesTheOldOne writes to a full disk.
func TestWriteLeavesTheOldOne(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("needs root for a small file system:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	name := filepath.Join(dir, "key")
	if err := Write(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(name, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v; want no space left", err)
	}
	entries, err := os.ReadDir(dir)
	got, rerr := os.ReadFile(name)
	if err != nil || rerr != nil || len(entries) != 1 || string(got) != "old" {
		t.Errorf("left %q in %v, %v %v; want the old file alone", got, entries, err, rerr)
	}
}

func TestRenameNeedsTheFile(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := Rename(from, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v; want none of it", err)
	}
	if err := os.WriteFile(from, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestMkdirAllMakesParents(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b", "c")
	for range 2 { // what is there is no error
		if err := MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v; want 0700", d, info, err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(filepath.Join(top, "file", "d"), 0o700); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: got %v", err)
	}
}
