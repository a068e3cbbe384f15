//go:build linux

package rootfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExport holds that an image goes out with the digests it came with, and comes in again elsewhere.
func TestExport(t *testing.T) {
	needRoot(t)
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config()})
	ref, digest := reg.push("team/app:v1", testImage(t, nil))
	dir := filepath.Join(t.TempDir(), "layout")
	if _, err := s.Export(t.Context(), ref.String(), dir, nil); !isError(err, ErrNotPulled) {
		t.Errorf("got %v; want ErrNotPulled", err)
	}
	if _, err := s.Pull(t.Context(), ref, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddImage(NewStack{Name: "mine"}, digest); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docker://" + reg.host + "/team/app:v1", digest, ref.WithDigest(digest).String(), "mine", "preloaded:mine"} {
		if i, err := s.FindImage(name); err != nil || i.Digest != digest {
			t.Errorf("%s: got %q, %v; want %q", name, i.Digest, err, digest)
		}
	}
	var done, total int64
	if _, err := s.Export(t.Context(), "mine", dir, func(d, of int64) { done, total = d, of }); err != nil || done != total || done == 0 {
		t.Fatalf("got %v after %d of %d bytes", err, done, total)
	}
	if _, err := s.Export(t.Context(), "mine", dir, nil); err == nil {
		t.Error("an export replaced what was there")
	}
	other := newStore(t, Config{})
	r, err := ParseReference("oci:" + dir)
	if err != nil {
		t.Fatal(err)
	}
	img, err := other.Pull(t.Context(), r, PullOptions{})
	if err != nil || img.Digest != digest {
		t.Fatalf("got %q, %v; want %q", img.Digest, err, digest)
	}
	inRoot(t, other, r.String(), func(root string) { checkImported(t, "exported", root) })
}

func TestKernel(t *testing.T) {
	t.Parallel()
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got := kernelOf(root)
	t.Logf("this machine's C library wants Linux %q", got)
	if _, err := os.Stat("/lib/x86_64-linux-gnu/libc.so.6"); err == nil && !strings.Contains(got, ".") {
		t.Errorf("got %q; want a version", got)
	}
	for _, c := range []struct {
		have, want string
		older      bool
	}{{"6.18.1-generic", "3.2.0", false}, {"3.10.0-1160.el7", "3.2.0", false}, {"3.2", "3.2.0", false}, {"2.6.32", "3.2.0", true}, {"5.4.0", "5.10.0", true}} {
		if got := olderKernel(c.have, c.want); got != c.older {
			t.Errorf("%s, %s: got %t; want %t", c.have, c.want, got, c.older)
		}
	}
	if text := KernelWarning(Image{Kernel: "99.0.0"}); !strings.Contains(text, "99.0.0") {
		t.Errorf("got %q; want a warning", text)
	}
	if text := KernelWarning(Image{Kernel: "2.6.0"}) + KernelWarning(Image{}); text != "" {
		t.Errorf("got %q; want none", text)
	}
}
