package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var twinTime = time.Unix(1_700_000_000, 0)

// writeTwin writes a file that an archive may have a copy of.
func writeTwin(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644), os.Chtimes(file, twinTime, twinTime)); err != nil {
		t.Fatal(err)
	}
}

// unpackTwins unpacks files of a tar, all of one time, and returns where.
func unpackTwins(t *testing.T, o Options, items ...item) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, it := range items {
		h := &tar.Header{Name: it.name, Typeflag: tar.TypeReg, Mode: it.mode, Size: int64(len(it.body)), ModTime: twinTime}
		if it.link != "" {
			h.Typeflag, h.Linkname = tar.TypeLink, it.link
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, it.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	dir, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	stats, err := Into(t.Context(), dir, io.NewSectionReader(bytes.NewReader(b.Bytes()), 0, int64(b.Len())), o)
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, it := range items {
		size += int64(len(it.body))
	}
	if stats.Bytes != size {
		t.Errorf("got %d bytes; want %d", stats.Bytes, size)
	}
	return to
}

func inodeOf(t *testing.T, name string) uint64 {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// TestTwinsAreShared unpacks copies of files, and files that are like others in all but one respect.
func TestTwinsAreShared(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 20<<10) // more than is compared at once
	changed := func(at int) string { return long[:at] + "X" + long[at+1:] }
	twins := t.TempDir()
	for _, name := range []string{"first", "early", "late", "end", "mode", "dir/moved", "shorter"} {
		writeTwin(t, twins, name, long)
	}
	writeTwin(t, twins, "small", "s")
	writeTwin(t, twins, "empty", "")
	found, err := FindTwins(t.Context(), twins)
	if err != nil {
		t.Fatal(err)
	}
	items := []item{{name: "app/first", body: long, mode: 0o644}, {name: "app/early", body: changed(3), mode: 0o644}, {name: "app/late", body: changed(200_000), mode: 0o644},
		{name: "app/end", body: changed(len(long) - 1), mode: 0o644}, {name: "app/mode", body: long, mode: 0o755}, {name: "public/moved", body: long, mode: 0o644},
		{name: "app/shorter", body: long[1:], mode: 0o644}, {name: "app/small", body: "s", mode: 0o644}, {name: "app/empty", mode: 0o644}, {name: "app/other", body: long, mode: 0o644}}
	to := unpackTwins(t, Options{Twins: found}, items...)
	for _, it := range items {
		name := filepath.Join(to, it.name)
		got, err := os.ReadFile(name)
		info, serr := os.Stat(name)
		if err := errors.Join(err, serr); err != nil || string(got) != it.body || int64(info.Mode().Perm()) != it.mode || !info.ModTime().Equal(twinTime) {
			t.Errorf("%s: got %d bytes, %v, %v", it.name, len(got), info, err)
		}
	}
	for name, twin := range map[string]string{"app/first": "first", "public/moved": "dir/moved", "app/small": "small"} {
		if inodeOf(t, filepath.Join(to, name)) != inodeOf(t, filepath.Join(twins, twin)) {
			t.Errorf("%s is another file than its twin", name)
		}
	}
	for _, name := range []string{"early", "late", "end", "mode", "shorter", "empty"} {
		if inodeOf(t, filepath.Join(to, "app", name)) == inodeOf(t, filepath.Join(twins, name)) {
			t.Errorf("%s is the file that it differs from", name)
		}
	}
}

// TestATwinHasOneCopy wants two copies of a file to be two files, also where the file is in two trees, and prefers the one of the
// same path.
func TestATwinHasOneCopy(t *testing.T) {
	t.Parallel()
	twins := t.TempDir()
	a, b := filepath.Join(twins, "a"), filepath.Join(twins, "b")
	writeTwin(t, a, "x/file", "content")
	writeTwin(t, a, "y/file", "content")
	if err := errors.Join(os.MkdirAll(filepath.Join(b, "x"), 0o755), os.Link(filepath.Join(a, "x/file"), filepath.Join(b, "x/file"))); err != nil {
		t.Fatal(err)
	}
	found, err := FindTwins(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	to := unpackTwins(t, Options{Twins: found}, item{name: "app/y/file", body: "content", mode: 0o644}, item{name: "app/x/file", body: "content", mode: 0o644},
		item{name: "app/z/file", body: "content", mode: 0o644}, item{name: "app/hard", link: "app/z/file"})
	x, y, z := inodeOf(t, filepath.Join(to, "app/x/file")), inodeOf(t, filepath.Join(to, "app/y/file")), inodeOf(t, filepath.Join(to, "app/z/file"))
	if x != inodeOf(t, filepath.Join(a, "x/file")) || y != inodeOf(t, filepath.Join(a, "y/file")) {
		t.Error("a copy is not the file of its path")
	}
	if z == x || z == y || z != inodeOf(t, filepath.Join(to, "app/hard")) {
		t.Error("a further copy is the same file, or a hard link is another")
	}
}

// TestATwinOfAnotherOwnerIsNotShared gives the files of an archive to another user than the twin's.
func TestATwinOfAnotherOwnerIsNotShared(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to give files away")
	}
	twins := t.TempDir()
	writeTwin(t, twins, "file", "content")
	for uid, shared := range map[int]bool{0: true, 2000: false} {
		found, err := FindTwins(t.Context(), twins)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Twins: found, Owner: func(int, int) (int, int) { return uid, uid }}
		file := filepath.Join(unpackTwins(t, o, item{name: "file", body: "content", mode: 0o644}), "file")
		if (inodeOf(t, file) == inodeOf(t, filepath.Join(twins, "file"))) != shared {
			t.Errorf("owner %d: want shared %t", uid, shared)
		}
	}
}

// TestATwinThatIsGone is written instead.
func TestATwinThatIsGone(t *testing.T) {
	t.Parallel()
	twins := t.TempDir()
	writeTwin(t, twins, "file", "content")
	found, err := FindTwins(t.Context(), twins)
	if err := errors.Join(err, os.Remove(filepath.Join(twins, "file"))); err != nil {
		t.Fatal(err)
	}
	to := unpackTwins(t, Options{Twins: found}, item{name: "file", body: "content", mode: 0o644})
	if got, err := os.ReadFile(filepath.Join(to, "file")); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestATwinOnAnotherDisk is written instead.
func TestATwinOnAnotherDisk(t *testing.T) {
	t.Parallel()
	twins, err := os.MkdirTemp("/dev/shm", "twins-")
	if err != nil {
		t.Skip("needs a further file system:", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(twins); err != nil {
			t.Error(err)
		}
	})
	writeTwin(t, twins, "file", "content")
	found, err := FindTwins(t.Context(), twins)
	if err != nil {
		t.Fatal(err)
	}
	to := unpackTwins(t, Options{Twins: found}, item{name: "file", body: "content", mode: 0o644})
	if got, err := os.ReadFile(filepath.Join(to, "file")); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestCopyIsWhatItsArchiveBecomes copies a tree.
func TestCopyIsWhatItsArchiveBecomes(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	writeTwin(t, from, "dir/file", "content")
	if err := errors.Join(os.Chmod(filepath.Join(from, "dir/file"), 0o600), os.Mkdir(filepath.Join(from, "empty"), 0o700), os.Symlink("/dir", filepath.Join(from, "link")),
		os.Link(filepath.Join(from, "dir/file"), filepath.Join(from, "dir/same")), os.Chtimes(filepath.Join(from, "dir"), twinTime, twinTime)); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	dir, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	stats, err := Copy(t.Context(), dir, from, Options{})
	if err != nil || stats.Entries != 5 || stats.Bytes != 14 {
		t.Errorf("got %+v, %v", stats, err)
	}
	for _, name := range []string{"dir", "dir/file", "dir/same", "empty", "link"} {
		want, err := os.Lstat(filepath.Join(from, name))
		got, gerr := os.Lstat(filepath.Join(to, name))
		if err := errors.Join(err, gerr); err != nil || got.Mode() != want.Mode() || name != "empty" && !got.ModTime().Equal(want.ModTime()) {
			t.Errorf("%s: got %v; want %v: %v", name, got, want, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(to, "dir/same")); err != nil || string(got) != "content" || inodeOf(t, filepath.Join(to, "dir/same")) == inodeOf(t, filepath.Join(to, "dir/file")) {
		t.Errorf("got %q, %v; want a file like the other", got, err)
	}
	if to, err := os.Readlink(filepath.Join(to, "link")); err != nil || to != "/dir" {
		t.Errorf("got a link to %s, %v", to, err)
	}
	if _, err := Copy(t.Context(), dir, from, Options{Limits: Limits{Bytes: 10}}); err == nil {
		t.Error("it is not limited")
	}
}
