package tree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestDiskBytes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	one, err := DiskBytes(t.Context(), dir)
	if err != nil || one < 100_000 || one > 200_000 {
		t.Errorf("got %d, %v; want somewhat more than 100000", one, err)
	}
	if err := errors.Join(os.Link(file, filepath.Join(dir, "again")), os.Truncate(file, 1<<40)); err != nil {
		t.Fatal(err)
	}
	if got, err := DiskBytes(t.Context(), dir, file, filepath.Join(dir, "none")); err != nil || got != one {
		t.Errorf("got %d, %v with a second name and a hole; want %d", got, err, one)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := DiskBytes(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want it canceled", err)
	}
	if got, err := DiskBytes(t.Context(), "/proc/self"); err != nil || got != 0 {
		t.Errorf("got %d, %v of the kernel's own; want nothing", got, err)
	}
}

// TestAMeterCountsAFileOnce measures two directories that have a file in common.
func TestAMeterCountsAFileOnce(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := errors.Join(os.Mkdir(a, 0o700), os.Mkdir(b, 0o700), os.WriteFile(filepath.Join(a, "file"), make([]byte, 100_000), 0o600), os.Link(filepath.Join(a, "file"), filepath.Join(b, "file"))); err != nil {
		t.Fatal(err)
	}
	meter := Meter{}
	first, err := meter.DiskBytes(t.Context(), a)
	second, serr := meter.DiskBytes(t.Context(), b)
	both, berr := DiskBytes(t.Context(), a, b)
	if err := errors.Join(err, serr, berr); err != nil || first < 100_000 || second >= 100_000 || first+second != both {
		t.Errorf("got %d and %d bytes, %v; want %d, the file once", first, second, err, both)
	}
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, name := range []string{"kept", "unused"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "file"), make([]byte, 5000), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := List(t.Context(), dir, func(name string, used time.Time) bool { return name == "kept" && used.Equal(at) })
	if err != nil || len(all) != 1 || all[0].Name != "unused" || all[0].Bytes < 5000 || !all[0].Used.Equal(at) {
		t.Errorf("got %+v, %v; want the unused one", all, err)
	}
}
