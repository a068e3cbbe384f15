package container

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMountDevOnTmpfs has the state lie in a tmpfs, as below /tmp on many
// machines, where nothing tells a directory from the mount by its kind.
func TestMountDevOnTmpfs(t *testing.T) {
	needRoot(t)
	base := t.TempDir()
	if err := unix.Mount("tmpfs", base, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(base, unix.MNT_DETACH) })
	dir := filepath.Join(base, "dev")
	for range 2 { // the second finds it there
		if err := mountDev(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Errorf("unmount what was mounted once: %v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Error(err)
	}
}
