package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cupola/runtime/thread"
)

// TestMountNamespaceIsSmall holds what starts cost as the number of containers grows: each copies all mounts of this
// namespace, and gives them up.
func TestMountNamespaceIsSmall(t *testing.T) {
	needRoot(t)
	dir := filepath.Join(tempDir(t), "container")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	ns, err := newMountNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	for _, point := range mountPoints(t, ns) {
		if point != "/" && point != "/proc" && !strings.HasPrefix(point, "/proc/") {
			t.Errorf("%s is mounted in it", point)
		}
	}
}

// mountPoints returns where something is mounted in a namespace.
func mountPoints(t *testing.T, ns *os.File) (points []string) {
	t.Helper()
	var text []byte
	err := thread.Throwaway("container", func() (err error) {
		if err = unix.Unshare(unix.CLONE_FS); err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS)
		}
		if err == nil {
			text, err = os.ReadFile("/proc/thread-self/mountinfo")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		points = append(points, strings.Fields(line)[4])
	}
	if len(points) < 2 {
		t.Fatalf("got the mount points %q", points)
	}
	return points
}
