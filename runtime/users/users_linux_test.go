package users

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
}

var disk, one = Range{0x6c000000, Size}, Range{0x78010000, Size}

// TestNamespace makes namespaces from many threads, and looks that each has the
// owner and the map it should have and that the process is as before.
func TestNamespace(t *testing.T) {
	needRoot(t)
	var making sync.WaitGroup
	for range 8 {
		making.Go(func() {
			for range 20 {
				ns, err := Namespace(one)
				if err != nil {
					t.Error(err)
					return
				}
				owner := uint32(0)
				if err := ioctlOwner(ns, &owner); err != nil || owner != one.Base {
					t.Errorf("got owner %d, %v; want %d", owner, err, one.Base)
				}
				ns.Close()
			}
		})
	}
	making.Wait()
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(tasks) == 0 {
		t.Fatal(err)
	}
	for _, name := range tasks {
		status, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		for _, want := range []string{"Uid:\t0\t0\t0\t0\n", "CapEff:\t" + field(t, "CapEff"), "SigBlk:\t0000000000000000"} {
			if !strings.Contains(string(status), want) {
				t.Errorf("got no %q in\n%s", want, status)
			}
		}
	}
	if dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); dumpable != 1 {
		t.Errorf("got dumpable %d; want 1", dumpable)
	}
}

// TestNamespaceKeepsParentDeathSignal: a daemon that ends with its parent does
// so after it has made containers, too.
func TestNamespaceKeepsParentDeathSignal(t *testing.T) {
	needRoot(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) }()
	ns, err := Namespace(one)
	if err != nil {
		t.Fatal(err)
	}
	ns.Close()
	var signal int32
	if err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&signal)), 0, 0, 0); err != nil || signal != int32(unix.SIGTERM) {
		t.Errorf("got signal %d, %v; want %d", signal, err, unix.SIGTERM)
	}
}

func field(t *testing.T, name string) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), name+":\t")
	value, _, _ := strings.Cut(after, "\n")
	return value
}

func ioctlOwner(ns *os.File, owner *uint32) error {
	n, err := unix.IoctlGetUint32(int(ns.Fd()), unix.NS_GET_OWNER_UID)
	*owner = n
	return err
}

// TestShift shows a directory to a range, through which both sides see their own.
func TestShift(t *testing.T) {
	needRoot(t)
	dir, at := t.TempDir(), t.TempDir()
	for name, owner := range map[string]int{"theirs": int(disk.Base) + 2000, "hosts": 0} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, owner, owner)); err != nil {
			t.Fatal(err)
		}
	}
	from, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	clone, err := Shift(from, disk, one)
	if err != nil {
		t.Fatal(err)
	}
	defer clone.Close()
	if err := Attach(clone, at); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(at, unix.MNT_DETACH)
	for name, want := range map[string]uint32{"theirs": one.Base + 2000, "hosts": 0} {
		info, err := os.Stat(filepath.Join(at, name))
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != want {
			t.Errorf("%s: got %v, %v; want owner %d", name, info, err, want)
		}
	}
	if err := os.Chown(filepath.Join(at, "theirs"), int(one.Base)+7, int(one.Base)+8); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "theirs"))
	if st := info.Sys().(*syscall.Stat_t); err != nil || st.Uid != disk.Base+7 || st.Gid != disk.Base+8 {
		t.Errorf("got %d:%d, %v; want the range on disk", st.Uid, st.Gid, err)
	}
}

func BenchmarkNamespace(b *testing.B) {
	needRoot(b)
	for b.Loop() {
		ns, err := Namespace(one)
		if err != nil {
			b.Fatal(err)
		}
		ns.Close()
	}
}

func BenchmarkShift(b *testing.B) {
	needRoot(b)
	from, err := os.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer from.Close()
	for b.Loop() {
		clone, err := Shift(from, disk, one)
		if err != nil {
			b.Fatal(err)
		}
		clone.Close()
	}
}
