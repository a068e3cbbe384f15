package debian

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of so many bytes.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprint("size=", bytes)); err != nil {
		t.Skip("needs root for a small file system:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestBuildOnASmallDisk has too little room for what it downloads, which it sees,
// and for what that unpacks to, which it does not.
func TestBuildOnASmallDisk(t *testing.T) {
	noise := make([]byte, 300_000)
	_, _ = rand.Read(noise)
	for _, c := range []struct {
		name, content, want string
		asked               int
	}{
		{"for the packages", string(noise), "MB free; a stack of these 5 packages takes 1.0 MB", 0},
		{"for their files", strings.Repeat("x", 4_000_000), "no space left on device", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			large := testDeb{name: "large", version: "1", fields: "Essential: yes\n", compress: ".gz",
				files: []tar.Header{file("./usr/share/large", 0o644)}, content: map[string]string{"./usr/share/large": c.content}}
			a := newTestArchive(t, append(base(), large)...)
			o, dir := a.options(t), smallDisk(t, 600_000)
			o.Dest, o.CacheDir = filepath.Join(dir, "stacks", "one"), filepath.Join(dir, "cache")
			_, err := a.build(t, o)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.asked > 0 && !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("got %v; want %q", err, c.want)
			}
			if got := a.asks(".deb"); got != c.asked {
				t.Errorf("got %d packages asked for; want %d", got, c.asked)
			}
			wantNothing(t, filepath.Dir(o.Dest))
			half, err := filepath.Glob(filepath.Join(o.CacheDir, "*.part"))
			if err != nil || len(half) > 0 {
				t.Errorf("left %v, %v", half, err)
			}
		})
	}
}

// TestFullCache has no room for a download.
func TestFullCache(t *testing.T) {
	noise := make([]byte, 300_000)
	_, _ = rand.Read(noise)
	large := testDeb{name: "large", version: "1", fields: "Essential: yes\n", files: []tar.Header{file("./usr/share/large", 0o644)}, content: map[string]string{"./usr/share/large": string(noise)}}
	a := newTestArchive(t, append(base(), large)...)
	o := a.options(t)
	o.CacheDir = smallDisk(t, 200_000)
	if _, err := a.build(t, o); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v; want no space left", err)
	}
	half, err := filepath.Glob(filepath.Join(o.CacheDir, "*.part"))
	if err != nil || len(half) > 0 {
		t.Errorf("left %v, %v", half, err)
	}
	if _, err := os.Stat(o.Dest); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a stack: %v", err)
	}
}
