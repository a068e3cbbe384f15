package pack_test

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/rootfs/pack"
	"cupola/rootfs/system/systemtest"
)

// TestPackForeign holds that of a machine's own files only those are packed that every user of it may read, and without what makes
// programs another's.
func TestPackForeign(t *testing.T) {
	t.Parallel()
	root := systemtest.Machine(t, "usr/bin/su", "usr/bin/secret", "usr/lib/private/key", "usr/local/etc/conf", "usr/share/a", "usr/bin/link -> su", "etc/ld.so.cache")
	empty := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"usr/bin/su": fs.ModeSetuid | 0o755, "usr/bin/secret": 0o640, "usr/lib/private": 0o750} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(root, "usr/share/a"), filepath.Join(root, "usr/share/b")); err != nil {
		t.Fatal(err)
	}
	own := systemtest.Machine(t, "usr/not-seen", "etc/passwd", "etc/ld.so.cache")
	trees := []pack.Subtree{{Dir: own}, {Dir: filepath.Join(root, "usr"), At: "usr", Foreign: true}, {Dir: filepath.Join(root, "etc/ld.so.cache"), At: "etc/ld.so.cache", Foreign: true},
		{Dir: empty, At: "usr/local/etc", Foreign: true}}
	var text bytes.Buffer
	if err := pack.Trees(t.Context(), trees, pack.Options{Layer: true}, &text); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for r := tar.NewReader(&text); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := got[h.Name]; twice {
			t.Errorf("%s is there twice", h.Name)
		}
		got[h.Name] = h.Mode
	}
	want := []string{"etc/", "etc/ld.so.cache", "etc/passwd", "usr/", "usr/bin/", "usr/bin/link", "usr/bin/su", "usr/lib/", "usr/lib/private/", "usr/local/", "usr/local/etc/", "usr/share/", "usr/share/a", "usr/share/b"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got["usr/bin/su"] != 0o755 {
		t.Errorf("got su with the mode %o", got["usr/bin/su"])
	}

	before, _, err := pack.Fingerprint(t.Context(), trees, pack.Options{Layer: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(root, "usr/share/a"), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if after, bytes, err := pack.Fingerprint(t.Context(), trees, pack.Options{Layer: true}); err != nil || after == before || bytes == 0 {
		t.Errorf("a file changed: got %s, %s, %d bytes, %v", before, after, bytes, err)
	}
}
