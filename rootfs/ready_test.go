package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"cupola/rootfs/disk"
	"cupola/rootfs/overlay"
	"cupola/rootfs/root"
)

// newLoopStore opens a store whose disks are images. A directory with a project quota needs nothing made ready; without either,
// the machine cannot show it.
func newLoopStore(t *testing.T) *Store {
	t.Helper()
	needRoot(t)
	s := newStore(t, Config{IDs: testIDs})
	if m, why := s.Disks.Method(); m != disk.Loop {
		t.Skipf("disks are not made ready where their method is %s: %s", m, why)
	}
	return s
}

// awaitReady waits until n disks are mounted that no container has, and returns where.
func awaitReady(t *testing.T, s *Store, n int) []string {
	t.Helper()
	timeout, tick := time.After(time.Minute), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		mounts, err := overlay.MountsBelow(s.store.Path("run", ".ready"))
		if err != nil {
			t.Fatal(err)
		}
		if len(mounts) == n {
			return mounts
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("got %q; want %d disks that are ready", mounts, n)
		}
	}
}

// The second container of a size has a disk that was mounted before it came, empty and of that size; a disk is ready
// for no container that is not there.
func TestReadyDisk(t *testing.T) {
	s := newLoopStore(t)
	mount := func(id string, mib int64) root.Root {
		t.Helper()
		r, err := s.Mount(t.Context(), root.Request{ID: id, Stack: "minifs", DiskBytes: mib << 20})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	mount("one", 16)
	device := blockDevice(t, awaitReady(t, s, 1)[0])
	mount("other", 32)
	r := mount("two", 16)
	if got := blockDevice(t, s.store.Path("run", "two", disk.Data)); got != device {
		t.Errorf("got device %d; want %d, which was ready", got, device)
	}
	if uid, gid := ownerOf(t, r.Path); uid != testIDs.Base || gid != testIDs.Base {
		t.Errorf("got owner %d:%d; want the container's root", uid, gid)
	}
	if err := os.WriteFile(filepath.Join(r.Path, "fits"), make([]byte, 15<<20), 0o600); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(r.Path, "more"), make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v; want no space left", err)
	}
	awaitReady(t, s, 2)

	// A successor, after a kill, has its own.
	again, err := New(Config{Dir: s.store.Dir, IDs: testIDs})
	if err != nil {
		t.Fatal(err)
	}
	awaitReady(t, again, 0)
	if _, err := os.Stat(filepath.Join(r.Path, "fits")); err != nil {
		t.Error(err)
	}
	if _, err := again.Mount(t.Context(), root.Request{ID: "three", Stack: "minifs", DiskBytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, again, 1)
	for _, id := range []string{"one", "two", "three", "other"} {
		if err := again.Unmount(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	awaitReady(t, again, 0)
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	checkClean(t, again)
}

// Disks are ready of the sizes that containers had last, and of no more than four.
func TestReadyDisksAreFew(t *testing.T) {
	s := newLoopStore(t)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		if _, err := s.Mount(t.Context(), root.Request{ID: id, Stack: "minifs", DiskBytes: 16 << 20 * int64(id[0]-'a'+1)}); err != nil {
			t.Fatal(err)
		}
	}
	awaitReady(t, s, 4)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	awaitReady(t, s, 0)
	if _, err := os.Stat(s.store.Path("run", "f", disk.Image)); errors.Is(err, fs.ErrNotExist) {
		t.Error("the container's own disk is gone with those that were ready")
	}
}

func blockDevice(t *testing.T, dir string) uint64 {
	t.Helper()
	st, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t).Dev
}
