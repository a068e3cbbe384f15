package rootfs

import (
	"archive/zip"
	"bytes"
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
	"cupola/rootfs/root"
	"cupola/rootfs/tree"
	"cupola/rootfs/unpack"
	"cupola/runtime/contract"
	"cupola/runtime/durable"
)

// writeZip writes the files of an app, all of 1970.
func writeZip(t testing.TB, files ...file) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "package-*.zip")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w := zip.NewWriter(f)
	for _, of := range files {
		h := &zip.FileHeader{Name: of.name, Method: zip.Deflate, Modified: time.Unix(0, 0)}
		h.SetMode(of.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(to, of.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

func keepPackage(t *testing.T, s *Store, files ...file) (digest string) {
	t.Helper()
	digest, _, err := s.Layers.KeepZip(t.Context(), writeZip(t, files...))
	if err != nil || digest == "" {
		t.Fatalf("got %q, %v; want it kept", digest, err)
	}
	return digest
}

// keepLike keeps a droplet that has files of a package.
func keepLike(t *testing.T, s *Store, digest string, files ...file) layer.Layer {
	t.Helper()
	l, err := tryKeepLike(t, s, []string{strings.Repeat("0", 64), digest}, files...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	of, err := os.Stat(a)
	other, oerr := os.Stat(b)
	if err := errors.Join(err, oerr); err != nil {
		t.Fatal(err)
	}
	return os.SameFile(of, other)
}

// packageFile is a file of a kept package on the disk.
func packageFile(t *testing.T, s *Store, digest, name string) string {
	t.Helper()
	dir, ok := s.Layers.Kept(digest)
	if !ok {
		t.Fatal("it is not kept")
	}
	return filepath.Join(dir, tree.FS, name)
}

var smallPackage = []file{{"run", "#!/bin/sh\n", 0o755}, {"dir/page", strings.Repeat("page ", 5000), 0o664}, {"link", "dir/page", fs.ModeSymlink | 0o777}}

// TestAKeptPackageIsItsZip makes the zip of a kept package after a restart, and keeps that, which changes nothing.
func TestAKeptPackageIsItsZip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	digest := keepPackage(t, newStore(t, Config{Dir: dir}), smallPackage...)
	// The digests of packages stand in rows: it must never change.
	if want := "922d4500b763d09ea6cae5ab18d6c7c853fbfb36b0b50a9b5c917897e3837293"; digest != want {
		t.Errorf("got the digest %s; want %s", digest, want)
	}
	s := newStore(t, Config{Dir: dir})
	var b bytes.Buffer
	if err := s.Layers.WriteArchive(t.Context(), digest, &b); err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(b.Bytes()); hex.EncodeToString(sum[:]) != digest {
		t.Error("the zip has another digest")
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	if want := []string{"dir/", "dir/page", "link", "run"}; !slices.Equal(names, want) {
		t.Errorf("got %q; want %q", names, want)
	}
	if got, err := fs.ReadFile(r, "dir/page"); err != nil || string(got) != smallPackage[1].content {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	f, err := s.Layers.OpenFile(digest, "dir/page")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"none", "dir", "link", "../layer.json"} {
		if f, err := s.Layers.OpenFile(digest, name); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
	}
	made := filepath.Join(t.TempDir(), "made.zip")
	if err := os.WriteFile(made, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := os.Open(made)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if same, size, err := s.Layers.KeepZip(t.Context(), again); err != nil || same != digest || size != int64(b.Len()) {
		t.Errorf("got %s of %d bytes, %v; want the same", same, size, err)
	}
}

// TestADropletSharesItsPackage keeps a droplet with files of its package, which are on the disk once, and stay as long as one of
// both is there. The droplet's digest is the one that it has without the package.
func TestADropletSharesItsPackage(t *testing.T) {
	t.Parallel()
	alone := keepDroplet(t, newStore(t, Config{}), dropletOfPackage...)
	s := newStore(t, Config{})
	digest := keepPackage(t, s, smallPackage...)
	l := keepLike(t, s, digest, dropletOfPackage...)
	if l.Digest != alone.Digest {
		t.Errorf("got the digest %s; want %s", l.Digest, alone.Digest)
	}
	for _, name := range []string{"run", "dir/page"} {
		if !sameFile(t, keptFile(t, s, l, "app/"+name), packageFile(t, s, digest, name)) {
			t.Errorf("%s is on the disk twice", name)
		}
	}
	twice, err := tree.DiskBytes(t.Context(), packageFile(t, s, digest, "dir/page"), keptFile(t, s, l, "app/dir/page"))
	once, oerr := tree.DiskBytes(t.Context(), keptFile(t, s, l, "app/dir/page"))
	if err := errors.Join(err, oerr); err != nil || twice != once {
		t.Errorf("got %d bytes on the disk for both, %v; want %d", twice, err, once)
	}
	for _, gone := range []string{digest, l.Digest} {
		if err := s.Layers.Prune(t.Context(), func(d string) bool { return d != gone }, 0); err != nil {
			t.Fatal(err)
		}
		s.store.Trash.Wait()
		left := map[string]string{digest: l.Digest, l.Digest: digest}[gone]
		if err := s.Layers.WriteArchive(t.Context(), left, io.Discard); err != nil {
			t.Error(err)
		}
		if _, ok := s.Layers.Kept(gone); ok {
			t.Error("what no row names is there still")
		}
		keepPackage(t, s, smallPackage...)
		keepLike(t, s, digest, dropletOfPackage...)
	}
}

var dropletOfPackage = []file{{"./app/", "", fs.ModeDir | 0o755}, {"./app/run", "#!/bin/sh\n", 0o755}, {"./app/dir/page", strings.Repeat("page ", 5000), 0o644},
	{"./app/made", "by a buildpack", 0o644}, {"./staging_info.yml", "{}", 0o644}}

// TestADamagedPackage is refused, named, and whole again when it is uploaded again; the droplet that shares the file is named, too.
func TestADamagedPackage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := newStore(t, Config{Dir: dir})
	digest := keepPackage(t, before, smallPackage...)
	l := keepLike(t, before, digest, dropletOfPackage...)
	s := newStore(t, Config{Dir: dir}) // has not read them
	page := packageFile(t, s, digest, "dir/page")
	if err := errors.Join(os.WriteFile(page, []byte("other bits"), 0), os.Chtimes(page, time.Time{}, time.Unix(0, 0))); err != nil {
		t.Fatal(err)
	}
	to, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	kept, _ := s.Layers.Kept(digest)
	for of, err := range map[string]error{digest: s.Layers.WriteArchive(t.Context(), digest, io.Discard), l.Digest: s.Layers.WriteArchive(t.Context(), l.Digest, io.Discard)} {
		if !errors.Is(err, durable.ErrDamaged) || !strings.Contains(err.Error(), of) {
			t.Errorf("got %v; want that it is damaged, and its name", err)
		}
	}
	if err := s.Layers.Copy(t.Context(), kept, to, unpack.Options{}); !errors.Is(err, durable.ErrDamaged) {
		t.Errorf("a staging: got %v; want that it is damaged", err)
	}
	keepPackage(t, s, smallPackage...)
	if err := s.Layers.Copy(t.Context(), kept, to, unpack.Options{}); err != nil {
		t.Errorf("uploaded again: got %v", err)
	}
	keepLike(t, s, digest, dropletOfPackage...)
	if err := s.Layers.WriteArchive(t.Context(), l.Digest, io.Discard); err != nil {
		t.Errorf("staged again: got %v", err)
	}
}

// TestWhatNoZipCanBeMadeOf is left to be stored as it is.
func TestWhatNoZipCanBeMadeOf(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{})
	digest, _, err := s.Layers.KeepZip(t.Context(), writeZip(t, file{strings.Repeat("n", 256), "x", 0o644}))
	if digest != "" || err != nil {
		t.Errorf("got %s, %v; want neither", digest, err)
	}
	if entries, err := os.ReadDir(s.store.Path(layer.Dir)); err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v left", entries, err)
	}
}

// TestExtractOfAKeptPackage puts its files into a container's root.
func TestExtractOfAKeptPackage(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDs: testIDs})
	mounted, err := s.Mount(t.Context(), root.Request{ID: "f", Stack: "minifs", DiskBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := s.Layers.Kept(keepPackage(t, s, smallPackage...))
	if err := s.Extract(t.Context(), "f", kept, "/tmp/app", tree.Owner{UID: contract.VcapID, GID: contract.VcapID}); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(mounted.Path, "tmp/app/dir/page")
	info, err := os.Stat(page)
	if err != nil || info.Mode() != 0o644 || !info.ModTime().Equal(time.Unix(0, 0)) {
		t.Errorf("got %v, %v; want it with its mode and time", info, err)
	}
	for _, name := range []string{"tmp/app", "tmp/app/dir", "tmp/app/dir/page", "tmp/app/link"} {
		if uid, gid := ownerOf(t, filepath.Join(mounted.Path, name)); uid != testIDs.Base+contract.VcapID || gid != uid {
			t.Errorf("%s belongs to %d:%d; want vcap", name, uid, gid)
		}
	}
	if to, err := os.Readlink(filepath.Join(mounted.Path, "tmp/app/link")); err != nil || to != "dir/page" {
		t.Errorf("got a link to %s, %v", to, err)
	}
}
