package rootfs

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"cupola/test/powercut"
)

// TestPowerCutsLoseNoKeptLayer keeps packages, and droplets that share files with them, on a recorded disk, cuts the power at
// random moments, and wants each whole that was kept before.
func TestPowerCutsLoseNoKeptLayer(t *testing.T) {
	needRoot(t)
	top := t.TempDir()
	disk, err := powercut.New(top, 128<<20)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[int]string{} // digests by the moment
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
			var bits, app []file
			for m := range 30 {
				bits = append(bits, file{fmt.Sprintf("dir%d/file%d", m%3, m), fmt.Sprint(n, m), 0o644})
				app = append(app, file{"./app/" + bits[m].name, bits[m].content, 0o644})
			}
			digest := keepPackage(t, s, bits...)
			kept[disk.Now()] = digest
			l := keepLike(t, s, digest, append(app, file{"./app/made", fmt.Sprint(n), 0o644})...)
			if a, b := packageFile(t, s, digest, "dir0/file0"), keptFile(t, s, l, "app/dir0/file0"); !sameFile(t, a, b) {
				t.Fatal("the droplet has other files than the package")
			}
			kept[disk.Now()] = l.Digest
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
func readKept(t *testing.T, dir string, kept map[int]string, cut int) (err error) {
	s, err := New(Config{Dir: filepath.Join(dir, "store"), Unmounted: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for moment, digest := range kept {
		if moment <= cut {
			err = errors.Join(err, s.Layers.WriteArchive(t.Context(), digest, io.Discard))
		}
	}
	return err
}
