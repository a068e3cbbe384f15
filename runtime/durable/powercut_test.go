//go:build linux

package durable

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cupola/test/powercut"
)

// durably is what a power cut must not take back once it has returned, in this
// order: each needs what the one before left.
var durably = []struct {
	name       string
	do         func(dir string) error
	file, want string
}{
	{"MkdirAll", func(dir string) error { return MkdirAll(filepath.Join(dir, "a", "b"), 0o700) }, "a/b", ""},
	{"Write", func(dir string) error { return Write(filepath.Join(dir, "a/b/key"), []byte("first"), 0o600) }, "a/b/key", "first"},
	{"Write over it", func(dir string) error { return Write(filepath.Join(dir, "a/b/key"), []byte("2nd"), 0o600) }, "a/b/key", "2nd"},
	{"Rename", func(dir string) error {
		from := filepath.Join(dir, "a/b/upload")
		return errors.Join(os.WriteFile(from, []byte("sent"), 0o600), Rename(from, filepath.Join(dir, "a/b/blob")))
	}, "a/b/blob", "sent"},
}

// TestPowerCuts cuts the power when each of them has returned, before anything
// else is synced, which would bring the names to the disk as well.
func TestPowerCuts(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") == "" {
		t.Skip("needs root for a disk: set CUPOLA_TEST_ROOT=1")
	}
	disk, err := powercut.New(t.TempDir(), 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	var moments []int
	for _, c := range durably {
		// Another process, because this one serves the disk.
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriteForPowerCuts$")
		cmd.Env = append(os.Environ(), "CUPOLA_POWERCUT_DIR="+disk.Dir, "CUPOLA_POWERCUT_DO="+c.name)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", c.name, err, out)
		}
		moments = append(moments, disk.Now())
	}
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	disk.End(moments[len(moments)-1]) // what unmounting syncs is no part of the record
	images, dir, replay := t.TempDir(), t.TempDir(), disk.Replay()
	for n, c := range durably {
		image := filepath.Join(images, c.name)
		if err := replay.Image(image, moments[n], rand.New(rand.NewPCG(uint64(n), 0))); err != nil {
			t.Fatal(err)
		}
		if err := powercut.Mount(image, dir, func() error {
			name := filepath.Join(dir, c.file)
			if info, err := os.Stat(name); err != nil || info.IsDir() {
				return err
			}
			if got, err := os.ReadFile(name); err != nil || string(got) != c.want {
				t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
			}
			return nil
		}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestWriteForPowerCuts is the process that writes for the test above.
func TestWriteForPowerCuts(t *testing.T) {
	dir, do := os.Getenv("CUPOLA_POWERCUT_DIR"), os.Getenv("CUPOLA_POWERCUT_DO")
	if dir == "" {
		t.Skip("it is started by the test of power cuts")
	}
	for _, c := range durably {
		if c.name == do {
			if err := c.do(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}
