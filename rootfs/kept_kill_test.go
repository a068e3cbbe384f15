package rootfs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cupola/rootfs/layer"
	"cupola/runtime/contract"
)

// appsToKeep is how many apps keepForever has.
const appsToKeep = 4

// keepForever keeps packages, and droplets that share files with them, until it is killed, and writes the digest of each.
func keepForever(dir, apps string) {
	s, err := New(Config{Dir: dir, Unmounted: true})
	for n := 0; err == nil; n++ {
		err = keepBoth(s, filepath.Join(apps, fmt.Sprint(n%appsToKeep)))
	}
	fmt.Println("error:", err)
	os.Exit(1)
}

// keepBoth keeps an archive as a package, and then as its droplet.
func keepBoth(s *Store, app string) error {
	f, err := os.Open(app + ".zip")
	if err != nil {
		return err
	}
	defer f.Close()
	bits, _, err := s.Layers.KeepZip(context.Background(), f)
	if err != nil {
		return err
	}
	fmt.Println("done", bits)
	droplet, err := os.Open(app + ".tgz")
	if err != nil {
		return err
	}
	defer droplet.Close()
	kept, _, err := s.Layers.Keep(context.Background(), droplet, layer.Layer{Dest: contract.Home, UID: contract.VcapID, GID: contract.VcapID}, bits)
	if err != nil {
		return err
	}
	fmt.Println("done", kept)
	return nil
}

// TestKilledWhileItKeeps kills a daemon at many moments: its successor has all that was kept, whole, and nothing half done.
func TestKilledWhileItKeeps(t *testing.T) {
	t.Parallel()
	apps := t.TempDir()
	for n := range appsToKeep {
		var bits, app []file
		for m := range 40 {
			bits = append(bits, file{fmt.Sprintf("dir%d/file%d", m%3, m), strings.Repeat(fmt.Sprint(n, m), 1000), 0o644})
			app = append(app, file{"./app/" + bits[m].name, bits[m].content, 0o644})
		}
		tgz, _ := writeTgz(t, app...)
		if err := errors.Join(os.Rename(writeZip(t, bits...).Name(), filepath.Join(apps, fmt.Sprint(n)+".zip")), os.Rename(tgz, filepath.Join(apps, fmt.Sprint(n)+".tgz"))); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 * appsToKeep {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ROOTFS_KEEP_DIR="+dir, "ROOTFS_KEEP_APPS="+apps)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, kept := bufio.NewScanner(out), []string{}
		for n := 0; n < 1+round && lines.Scan(); n++ {
			kept = append(kept, strings.TrimPrefix(lines.Text(), "done "))
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		for lines.Scan() { // until the last writer is gone
		}
		_ = cmd.Wait() // it was killed
		wantWhole(t, dir, kept)
	}
}

// wantWhole opens a store that was killed, and reads all that it has.
func wantWhole(t *testing.T, dir string, kept []string) {
	t.Helper()
	s, err := New(Config{Dir: dir, Unmounted: true})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Layers.AllKept()
	if err != nil {
		t.Fatal(err)
	}
	for _, digest := range kept {
		if all[digest] == "" {
			t.Errorf("%s is not there", digest)
		}
	}
	for digest := range all {
		if err := s.Layers.WriteArchive(t.Context(), digest, io.Discard); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(s.store.Path(layer.Dir))
	if err != nil || len(entries) != len(all) {
		t.Errorf("got %v, %v for %d that are whole", entries, err, len(all))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
