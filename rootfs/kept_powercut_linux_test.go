package rootfs

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"cupola/rootfs/layer"
	"cupola/test/powercut"
)

// TestPowerCutsLoseNoKeptLayer keeps layers on a recorded disk, cuts the power at random moments, and wants each layer whole
// that was kept before.
func TestPowerCutsLoseNoKeptLayer(t *testing.T) {
	needRoot(t)
	top := t.TempDir()
	disk, err := powercut.New(top, 128<<20)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[int]layer.Layer{} // by the moment
	func() {
		defer func() {
			if err := disk.Close(); err != nil {
				t.Error(err)
			}
		}()
		s, err := New(Config{Dir: filepath.Join(disk.Dir, "store"), Unmounted: true})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 8 {
			var app []file
			for m := range 30 {
				app = append(app, file{fmt.Sprintf("./app/dir%d/file%d", m%3, m), fmt.Sprint(n, m), 0o644})
			}
			l := keepDroplet(t, s, app...)
			kept[disk.Now()] = l
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	replay, dir := disk.Replay(), filepath.Join(top, "cuts")
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	for moment := 0; moment <= disk.Now(); moment += 1 + rng.IntN(disk.Now()/12+1) {
		image := filepath.Join(top, "cut")
		if err := replay.Image(image, moment, rng); err != nil {
			t.Fatal(err)
		}
		if err := powercut.Mount(image, dir, func() error { return readKept(t, dir, kept, moment) }); err != nil {
			t.Errorf("cut after %d of %d operations: %v; seed %d", moment, disk.Now(), err, seed)
		}
	}
}

// readKept opens the store that a cut left, and reads what was kept before that.
func readKept(t *testing.T, dir string, kept map[int]layer.Layer, cut int) (err error) {
	s, err := New(Config{Dir: filepath.Join(dir, "store"), Unmounted: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for moment, l := range kept {
		if moment <= cut {
			err = errors.Join(err, s.Layers.WriteArchive(t.Context(), l.Digest, io.Discard))
		}
	}
	return err
}
