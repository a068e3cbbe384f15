package rootfs

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cupola/rootfs/disk"
	"cupola/rootfs/layer"
	"cupola/rootfs/overlay"
	"cupola/rootfs/root"
	"cupola/rootfs/tree"
	"cupola/runtime/contract"
)

// TestMain lets the test binary be the daemon that crashes.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ROOTFS_CRASH_DIR"); dir != "" {
		mountForever(dir, os.Getenv("ROOTFS_CRASH_ARCHIVE"), os.Getenv("ROOTFS_CRASH_DIGEST"))
	}
	if dir := os.Getenv("ROOTFS_PULL_DIR"); dir != "" {
		pullForever(dir, os.Getenv("ROOTFS_PULL_REF"), os.Getenv("ROOTFS_PULL_CERT"))
	}
	if dir := os.Getenv("ROOTFS_KEEP_DIR"); dir != "" {
		keepForever(dir, os.Getenv("ROOTFS_KEEP_APPS"))
	}
	os.Exit(m.Run())
}

// mountForever mounts and unmounts roots until it is killed, writing a line for each.
func mountForever(dir, archive, digest string) {
	s, err := New(Config{Dir: dir, IDs: testIDs})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var wg sync.WaitGroup
	for worker := range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				l := layer.Layer{Digest: digest, Archive: archive, Dest: fmt.Sprintf("/layer%d-%d", worker, i), UID: contract.VcapID, GID: contract.VcapID}
				id := fmt.Sprintf("w%d-%d", worker, i)
				_, err := s.Mount(context.Background(), root.Request{ID: id, Stack: "minifs", Layers: []layer.Layer{l}, DiskBytes: 16 << 20})
				if err == nil && i%2 == 0 {
					err = s.Unmount(context.Background(), id)
				}
				if err != nil {
					fmt.Println("error:", err)
				}
				fmt.Println("done", id)
			}
		})
	}
	wg.Wait()
}

// TestKilled kills a daemon at many moments of its work: its successor finds all that is left and takes it away.
func TestKilled(t *testing.T) {
	needRoot(t)
	archive, digest := writeTgz(t, file{"f", strings.Repeat("content ", 10_000), 0o644})
	for round := range 10 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ROOTFS_CRASH_DIR="+dir, "ROOTFS_CRASH_ARCHIVE="+archive, "ROOTFS_CRASH_DIGEST="+digest)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 1+3*round && lines.Scan(); n++ {
			if strings.HasPrefix(lines.Text(), "error") {
				t.Error(lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		for lines.Scan() { // until the last writer is gone
		}
		_ = cmd.Wait() // it was killed
		takeOver(t, dir)
	}
}

func takeOver(t *testing.T, dir string) {
	t.Helper()
	s, err := New(Config{Dir: dir, IDs: testIDs})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("found %d", len(ids))
	for _, id := range ids {
		if err := s.Unmount(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	checkClean(t, s)
	entries, err := os.ReadDir(s.store.Path("layers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if b, err := os.ReadFile(s.store.Path("layers", e.Name(), "fs", strings.Split(layerDest(t, s, e.Name()), "/")[1], "f")); err != nil || len(b) != 80_000 {
			t.Errorf("layer %s counts as whole but holds %d bytes, %v", e.Name(), len(b), err)
		}
	}
}

func layerDest(t *testing.T, s *Store, key string) string {
	t.Helper()
	m, err := tree.ReadMark(s.store.Path("layers", key))
	if err != nil {
		t.Fatal(err)
	}
	return m.Dest
}

// checkClean holds that no mount, loop device or container's directory is left.
func checkClean(t *testing.T, s *Store) {
	t.Helper()
	mounts, err := overlay.MountsBelow(filepath.Dir(s.store.Path("run")))
	if err != nil || len(mounts) > 0 {
		t.Errorf("got mounts %q, %v; want none", mounts, err)
	}
	loops, err := disk.Loops(s.store.Path("run"))
	if err != nil || len(loops) > 0 {
		t.Errorf("got loop devices %v, %v; want none", loops, err)
	}
	for _, dir := range []string{"run", "run/.trash", "trash"} {
		entries, err := os.ReadDir(s.store.Path(dir))
		if entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return slices.Contains([]string{".trash", ".spare", ".ready"}, e.Name()) }); err != nil || len(entries) > 0 {
			t.Errorf("got %v, %v in %s; want nothing", entries, err, dir)
		}
	}
}

// TestHalfStates makes by hand what a crash between any two steps leaves.
func TestHalfStates(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDs: testIDs})
	if err := overlay.MakePrivate(s.store.Path("run")); err != nil {
		t.Fatal(err)
	}
	states := map[string]func(dir string) error{
		"empty":       func(string) error { return nil },
		"norecord":    func(dir string) error { return os.Mkdir(filepath.Join(dir, disk.Data), 0o700) },
		"tornrecord":  func(dir string) error { return os.WriteFile(filepath.Join(dir, "root.json"), []byte(`{"Sta`), 0o600) },
		"imageonly":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "disk.img"), make([]byte, 4096), 0o600) },
		"diskmounted": func(dir string) error { return s.Disks.Create(dir, disk.Size{Bytes: 8 << 20}) },
	}
	var want []string
	for id, make := range states {
		if err := os.Mkdir(s.store.Path("run", id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := make(s.store.Path("run", id)); err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	slices.Sort(want)
	again, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.List(); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for _, id := range want {
		if err := again.Unmount(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	checkClean(t, s)
}

// TestHalfLayers holds that only whole layers are used after a crash of the daemon, and only synced ones after one of
// the machine.
func TestHalfLayers(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{})
	boot := tree.NewMark().Boot
	marks := map[string]*tree.Mark{
		"synced-1": {Boot: "another", Synced: true}, "thisboot-1": {Boot: boot}, "lastboot-1": {Boot: "another"},
		"nomark-1": nil, ".new-123": {Boot: boot},
	}
	for name, m := range marks {
		if err := os.MkdirAll(s.store.Path("layers", name, "fs"), 0o700); err != nil {
			t.Fatal(err)
		}
		if m != nil {
			if err := tree.WriteMark(s.store.Path("layers", name), *m); err != nil {
				t.Fatal(err)
			}
		}
	}
	again, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	entries, err := os.ReadDir(s.store.Path("layers"))
	if err != nil || len(entries) != 2 || entries[0].Name() != "synced-1" || entries[1].Name() != "thisboot-1" {
		t.Errorf("got %v, %v; want synced-1 and thisboot-1", entries, err)
	}
}

func TestLayerRefused(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{})
	good := droplet(t, "x")
	evil, evilDigest := writeTgz(t, file{"../evil", "x", 0o644})
	cases := []struct {
		name, want string
		layer      layer.Layer
	}{
		{"wrong digest", "digest", layer.Layer{Digest: strings.Repeat("0", 64), Archive: good.Archive, Dest: "/home/vcap"}},
		{"hostile", "climbs out", layer.Layer{Digest: evilDigest, Archive: evil, Dest: "/home/vcap"}},
		{"missing", "no such file", layer.Layer{Digest: good.Digest, Archive: filepath.Join(t.TempDir(), "none"), Dest: "/home/vcap"}},
	}
	for _, c := range cases {
		if _, err := s.Layers.Unpack(t.Context(), c.layer); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %q", c.name, err, c.want)
		}
	}
	for _, l := range []layer.Layer{{Digest: "xyz", Dest: "/a"}, {Digest: good.Digest, Dest: "a"}, {Digest: "../../" + good.Digest, Dest: "/a"}} {
		if _, err := s.Layers.Keys([]layer.Layer{l}); err == nil {
			t.Errorf("%+v was taken", l)
		}
	}
	if entries, _ := os.ReadDir(s.store.Path("layers")); len(entries) > 0 {
		t.Errorf("got %v left behind", entries)
	}
}

// TestLayerCancelled ends an unpacking with the last of those who wait for it.
func TestLayerCancelled(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{})
	l := droplet(t, "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Layers.Unpack(ctx, l); err == nil {
		return // it was faster than the select
	}
	if _, err := s.Layers.Unpack(t.Context(), l); err != nil {
		t.Errorf("got %v after another's cancellation; want the layer", err)
	}
}
