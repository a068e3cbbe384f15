package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/rootfs/layer"
	"cupola/rootfs/root"
	"cupola/runtime/contract"
	"cupola/runtime/users"
)

// TestMountForOtherUsers shares the files of one layer between containers with
// different users: each sees them as its own, and writes as itself. The names of
// the layers say nothing of where they lie on the host.
func TestMountForOtherUsers(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDs: testIDs, Tools: []string{"ls"}})
	if err := s.Shifts(); err != nil {
		t.Skip(err)
	}
	l := droplet(t, "hello")
	for id, users := range map[string]users.Range{"a": {Base: 0x78000000, Size: 1 << 16}, "b": {Base: 0x78010000, Size: 1 << 16}, "c": {}} {
		root, err := s.Mount(t.Context(), root.Request{ID: id, Stack: "minifs", Layers: []layer.Layer{l}, DiskBytes: 32 << 20, Users: users})
		if err != nil {
			t.Fatal(err)
		}
		base := users.Base
		if base == 0 {
			base = testIDs.Base
		}
		if err := errors.Join(s.WriteFile(id, "/etc/made", nil, 0o644, 0, 0), os.Chmod(filepath.Join(root.Path, "home/vcap/app/run"), 0o700)); err != nil { // copied up
			t.Fatal(err)
		}
		for name, want := range map[string]uint32{"": 0, "etc/passwd": 0, "etc/made": 0, "home/vcap/app": contract.VcapID, "home/vcap/app/run": contract.VcapID} {
			if uid, gid := ownerOf(t, filepath.Join(root.Path, name)); uid != base+want || gid != base+want {
				t.Errorf("%s: %q: got owner %d:%d; want %d", id, name, uid, gid, base+want)
			}
		}
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		for line := range strings.Lines(string(mounts)) {
			point := strings.Fields(line)[4]
			_, options, _ := strings.Cut(line, " - overlay ")
			if err != nil || strings.Contains(options, s.store.Dir) || point == s.store.Path("run", id, "lower") {
				t.Errorf("got %s, %v; want no path of the host, and the layers' mount gone", line, err)
			}
		}
		if err := s.Unmount(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if uid, _ := ownerOf(t, s.store.Path(s.Layers.Tree(l), "home/vcap/app/run")); uid != testIDs.Base+contract.VcapID {
		t.Errorf("got owner %d on disk; want %d", uid, testIDs.Base+contract.VcapID)
	}
}
