package pack_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"cupola/rootfs/pack"
	"cupola/rootfs/unpack"
)

// must fails the test that calls it.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holed writes parts into a file of a size that has holes elsewhere.
func holed(t *testing.T, name string, size int64, parts map[int64]string) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	for at, text := range parts {
		_, err := f.WriteAt([]byte(text), at)
		must(t, err)
	}
	must(t, f.Truncate(size))
	must(t, f.Close())
}

// unpacked is the directory that a tar is unpacked to.
func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	dir := t.TempDir()
	root, err := os.Open(dir)
	must(t, err)
	defer root.Close()
	_, err = unpack.Into(t.Context(), root, io.NewSectionReader(bytes.NewReader(packed), 0, int64(len(packed))),
		unpack.Options{Image: true, Verbatim: true, Limits: unpack.Limits{Bytes: -1, Ratio: -1}})
	must(t, err)
	return dir
}

func stat(t *testing.T, name string) *syscall.Stat_t {
	t.Helper()
	info, err := os.Lstat(name)
	must(t, err)
	return info.Sys().(*syscall.Stat_t)
}

// TestATreeComesBack packs what a volume may hold, and unpacks it.
func TestATreeComesBack(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Mkdir(at("sub"), 0o750))
	must(t, os.WriteFile(at("sub/plain"), []byte("text"), 0o640))
	must(t, os.Link(at("sub/plain"), at("again")))
	must(t, os.Symlink("/nowhere", at("link")))
	must(t, os.WriteFile(at(".wh.mark"), []byte("no whiteout"), 0o600))
	must(t, unix.Mkfifo(at("fifo"), 0o600))
	const size = 1 << 40 // far more than there is room for
	holed(t, at("big"), size, map[int64]string{0: "first", 1 << 30: "middle", size - 3: "end"})
	holed(t, at("hole"), 10<<20, nil)
	must(t, os.Chmod(dir, 0o710))
	named := unix.Setxattr(at("big"), "user.note", []byte("kept"), 0)

	var b bytes.Buffer
	must(t, pack.Tree(t.Context(), dir, pack.Options{Root: true, Holes: true}, &b))
	if b.Len() > 1<<20 {
		t.Errorf("holes took %d bytes", b.Len())
	}
	to := unpackedSmall(t, b.Bytes())
	for name, want := range map[string]string{"sub/plain": "text", "again": "text", ".wh.mark": "no whiteout"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
	if a, b := stat(t, filepath.Join(to, "again")), stat(t, filepath.Join(to, "sub/plain")); a.Ino != b.Ino || b.Mode&0o777 != 0o640 {
		t.Errorf("got inodes %d and %d, mode %o; want one file, 0640", a.Ino, b.Ino, b.Mode)
	}
	if m := stat(t, to).Mode & 0o777; m != 0o710 {
		t.Errorf("the directory itself has the mode %o; want 0710", m)
	}
	if m := stat(t, filepath.Join(to, "fifo")).Mode & syscall.S_IFMT; m != syscall.S_IFIFO {
		t.Errorf("got type %o; want a FIFO", m)
	}
	if st := stat(t, filepath.Join(to, "hole")); st.Size != 10<<20 || st.Blocks != 0 {
		t.Errorf("got %d bytes in %d blocks; want a hole", st.Size, st.Blocks)
	}
	list := entries(t, b.Bytes())
	big := list["big"]
	if big == nil || big.Size != size {
		t.Fatalf("got %+v; want the size", big)
	}
	if named == nil && big.PAXRecords["SCHILY.xattr.user.note"] != "kept" {
		t.Errorf("got %v; want its attribute", big.PAXRecords)
	}
}

// unpackedSmall unpacks all but what only reading would take minutes for.
func unpackedSmall(t *testing.T, packed []byte) string {
	t.Helper()
	var b bytes.Buffer
	r, w := tar.NewReader(bytes.NewReader(packed)), tar.NewWriter(&b)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		if h.Name == "big" {
			continue
		}
		h.PAXRecords, h.Format = nil, tar.FormatUnknown
		must(t, w.WriteHeader(h))
		_, err = io.Copy(w, r)
		must(t, err)
	}
	must(t, w.Close())
	return unpacked(t, b.Bytes())
}

func entries(t *testing.T, packed []byte) map[string]*tar.Header {
	t.Helper()
	all := map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		must(t, err)
		all[h.Name] = h
	}
}

// TestHolesComeBack has a file with more parts than a map may have.
func TestHolesComeBack(t *testing.T) {
	dir := t.TempDir()
	parts := map[int64]string{}
	const step, count = 128 << 10, 20_010
	for n := range int64(count) {
		parts[n*step] = "part"
	}
	holed(t, filepath.Join(dir, "file"), step*count, parts)
	var b bytes.Buffer
	must(t, pack.Tree(t.Context(), dir, pack.Options{Holes: true}, &b))
	r := tar.NewReader(bytes.NewReader(b.Bytes()))
	if h, err := r.Next(); err != nil || h.Size != step*count {
		t.Fatalf("got %+v, %v", h, err)
	}
	if b.Len() > 200<<20 {
		t.Errorf("it takes %d bytes", b.Len())
	}
	block := make([]byte, step)
	for n := range 2000 {
		if _, err := io.ReadFull(r, block); err != nil {
			t.Fatal(err)
		}
		if string(block[:4]) != "part" || !bytes.Equal(block[4:], make([]byte, step-4)) {
			t.Fatalf("part %d is another: %q", n, block[:8])
		}
	}
}

func TestATreeEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pack.Tree(ctx, dir, pack.Options{}, io.Discard); err == nil {
		t.Error("it went on")
	}
}
