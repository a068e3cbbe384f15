package container

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
	type result struct {
		text []byte
		err  error
	}
	results := make(chan result)
	go func() {
		runtime.LockOSThread() // which ends with it
		var r result
		if r.err = unix.Unshare(unix.CLONE_FS); r.err == nil {
			r.err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS)
		}
		if r.err == nil {
			r.text, r.err = os.ReadFile("/proc/thread-self/mountinfo")
		}
		results <- r
	}()
	r := <-results
	if r.err != nil {
		t.Fatal(r.err)
	}
	for line := range strings.Lines(string(r.text)) {
		points = append(points, strings.Fields(line)[4])
	}
	if len(points) < 2 {
		t.Fatalf("got the mount points %q", points)
	}
	return points
}
