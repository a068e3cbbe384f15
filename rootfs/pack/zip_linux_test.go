package pack_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cupola/rootfs/pack"
)

// zippable is a directory with what a zip can have.
func zippable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	old, early := time.Date(2001, 2, 3, 4, 5, 7, 900_000_000, time.UTC), time.Date(1975, 1, 1, 0, 0, 0, 0, time.UTC)
	must(t, errors.Join(os.MkdirAll(at("dir/empty"), 0o755), os.Chmod(at("dir"), 0o750),
		os.WriteFile(at("dir/run"), []byte("#!/bin/sh\n"), 0o755), os.WriteFile(at("dir/größe"), bytes.Repeat([]byte("0123456789"), 300_000), 0o640), os.WriteFile(at("none"), nil, 0o600),
		os.Symlink("dir/run", at("link")), os.Link(at("dir/run"), at("same"))))
	must(t, errors.Join(os.Chtimes(at("dir/run"), old, old), os.Chtimes(at("dir/größe"), old, old), os.Chtimes(at("none"), early, early)))
	return dir
}

// TestZipReadsBack wants all files with their modes and times. A further name is a further file.
func TestZipReadsBack(t *testing.T) {
	var b bytes.Buffer
	must(t, pack.Zip(t.Context(), zippable(t), &b))
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	must(t, err)
	old := time.Date(2001, 2, 3, 4, 5, 7, 0, time.UTC)
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
		want, ok := map[string]struct {
			mode fs.FileMode
			size uint64
			time time.Time
		}{"dir/": {fs.ModeDir | 0o750, 0, time.Time{}}, "dir/run": {0o755, 10, old}, "same": {0o755, 10, old}, "dir/größe": {0o640, 3_000_000, old},
			"none": {0o600, 0, time.Date(1975, 1, 1, 0, 0, 0, 0, time.UTC)}, "link": {fs.ModeSymlink | 0o777, 7, time.Time{}}}[f.Name]
		if ok && (f.Mode() != want.mode || f.UncompressedSize64 != want.size || !want.time.IsZero() && !f.Modified.Equal(want.time)) {
			t.Errorf("%s: got %v, %d bytes, %v; want %+v", f.Name, f.Mode(), f.UncompressedSize64, f.Modified, want)
		}
		if f.Flags&8 != 0 || f.NonUTF8 {
			t.Errorf("%s: it has the flags %x", f.Name, f.Flags)
		}
	}
	if want := []string{"dir/", "dir/empty/", "dir/größe", "dir/run", "link", "none", "same"}; !slices.Equal(names, want) {
		t.Errorf("got %q; want %q", names, want)
	}
	for name, want := range map[string]string{"dir/größe": string(bytes.Repeat([]byte("0123456789"), 300_000)), "same": "#!/bin/sh\n"} {
		if got, err := fs.ReadFile(r, name); err != nil || string(got) != want {
			t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
	}
}

// TestZipStaysTheSame holds the very bytes by their digest: those of packages stand in rows.
func TestZipStaysTheSame(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "app", "index.html")
	at := time.Unix(1_700_000_001, 0)
	must(t, errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("hello\n"), 0o644), os.Chtimes(file, at, at)))
	var b bytes.Buffer
	must(t, pack.Zip(t.Context(), dir, &b))
	sum := sha256.Sum256(b.Bytes())
	if got, want := hex.EncodeToString(sum[:]), "703ab5e7d0edad12fc6601ca0db154ef4950632c6e44cea3438f848ecb2601c6"; got != want {
		t.Errorf("got %s; want %s: %q", got, want, b.Bytes())
	}
}

func TestZipEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pack.Zip(ctx, zippable(t), &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want it canceled", err)
	}
}
