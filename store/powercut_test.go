//go:build linux

package store

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/runtime/durable"
	"cupola/store/blob"
	"cupola/store/cf"
	"cupola/test/powercut"
)

const (
	powerCuts    = 200
	writersOfCut = 3
	writesOfCut  = 120 // of each writer
)

// acknowledged is what a writer said is there, and the moment by which it did.
type acknowledged struct {
	name, digest string
	moment       int
}

// TestPowerCuts has three processes' worth of writers on a recorded disk, cuts
// the power at random moments, and wants all that was acknowledged before.
func TestPowerCuts(t *testing.T) {
	seed := powerCutSeed(t)
	acks, disk := writeUntilTheCut(t, "")
	t.Logf("%d writes acknowledged, %d operations of the disk, seed %d", len(acks), disk.Now(), seed)
	if lost := cutPower(t, disk, acks, powerCuts, seed); lost > 0 {
		t.Errorf("%d acknowledged writes were lost; CUPOLA_SEED=%d", lost, seed)
	}
}

// TestPowerCutsFindWhatIsNotSynced wants the test above to see what SQLite does
// not sync without FULL, and a blob that is not.
func TestPowerCutsFindWhatIsNotSynced(t *testing.T) {
	seed := powerCutSeed(t)
	for _, flaw := range []string{"synchronous=NORMAL", "unsynced blobs"} {
		acks, disk := writeUntilTheCut(t, flaw)
		if lost := cutPower(t, disk, acks, 20, seed); lost == 0 {
			t.Errorf("%s: nothing of %d writes was lost in 20 cuts", flaw, len(acks))
		} else {
			t.Logf("%s: %d lost", flaw, lost)
		}
	}
}

func powerCutSeed(t *testing.T) uint64 {
	if os.Getenv("CUPOLA_TEST_ROOT") == "" {
		t.Skip("needs root for a disk: set CUPOLA_TEST_ROOT=1")
	}
	if given := os.Getenv("CUPOLA_SEED"); given != "" {
		seed, err := strconv.ParseUint(given, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return seed
	}
	return rand.Uint64()
}

// writeUntilTheCut has another process write on a new disk until it is done: it
// must not be this one, which serves the disk.
func writeUntilTheCut(t *testing.T, flaw string) ([]acknowledged, *powercut.Disk) {
	t.Helper()
	disk, err := powercut.New(t.TempDir(), 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWriteForPowerCuts$", "-test.v")
	cmd.Env = append(os.Environ(), "CUPOLA_POWERCUT_DIR="+filepath.Join(disk.Dir, "a", "data"), "CUPOLA_POWERCUT_FLAW="+flaw)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acks []acknowledged
	var text strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "acknowledged" {
			acks = append(acks, acknowledged{f[1], f[2], disk.Now()})
		} else {
			fmt.Fprintln(&text, lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil || len(acks) != writersOfCut*writesOfCut {
		t.Fatalf("%d writes, %v: %s", len(acks), err, text.String())
	}
	end := disk.Now() // what unmounting syncs is no part of the record
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	disk.End(end)
	return acks, disk
}

// TestWriteForPowerCuts is the process that writes for the tests above.
func TestWriteForPowerCuts(t *testing.T) {
	dir, flaw := os.Getenv("CUPOLA_POWERCUT_DIR"), os.Getenv("CUPOLA_POWERCUT_FLAW")
	if dir == "" {
		t.Skip("it is started by the tests of power cuts")
	}
	s, err := Open(Config{Dir: filepath.Join(dir, "db")})
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := blob.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(content []byte) (string, error) {
		b, err := blobs.Put(t.Context(), strings.NewReader(string(content)))
		return b.Digest, err
	}
	switch flaw {
	case "synchronous=NORMAL":
		if _, err := s.writer.Exec("PRAGMA synchronous=NORMAL"); err != nil {
			t.Fatal(err)
		}
	case "unsynced blobs":
		put = func(content []byte) (string, error) {
			sum := sha256.Sum256(content)
			digest := hex.EncodeToString(sum[:])
			name := filepath.Join(dir, "blobs", digest[:2], digest)
			return digest, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, content, 0o600))
		}
	}
	var writers sync.WaitGroup
	for w := range writersOfCut {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for n := range writesOfCut {
				if err := writeAndSay(s, put, fmt.Sprintf("%d-%d", w, n), rng); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	os.Exit(0) // as a power cut does: nothing is closed in order
}

// writeAndSay puts a blob, writes the row that names it, and says so.
func writeAndSay(s *Store, put func([]byte) (string, error), name string, rng *rand.Rand) error {
	content := make([]byte, 1+rng.IntN(20<<10))
	for n := range content {
		content[n] = byte(rng.Uint32())
	}
	digest, err := put(content)
	if err != nil {
		return err
	}
	err = s.Write(As(context.Background(), name), func(tx *Tx) error {
		return Orgs.Insert(tx, &cf.Org{Name: name, Metadata: cf.Metadata{Labels: map[string]string{"digest": digest}}})
	})
	if err == nil {
		_, err = fmt.Printf("acknowledged %s %s\n", name, digest)
	}
	return err
}

// cutPower cuts the power at random moments, and counts what is missing.
func cutPower(t *testing.T, disk *powercut.Disk, acks []acknowledged, cuts int, seed uint64) (lost int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	var moments []int
	for range cuts {
		moments = append(moments, rng.IntN(disk.Now()+1))
	}
	slices.Sort(moments)
	images, dir := t.TempDir(), t.TempDir()
	replay := disk.Replay()
	for n, moment := range moments {
		image := filepath.Join(images, strconv.Itoa(n)) // a loop device may be slow to let go of the last one
		if err := replay.Image(image, moment, rng); err != nil {
			t.Fatal(err)
		}
		before := slices.DeleteFunc(slices.Clone(acks), func(a acknowledged) bool { return a.moment > moment })
		if err := powercut.Mount(image, dir, func() error {
			missing, err := missingOf(t, filepath.Join(dir, "a", "data"), before)
			lost += missing
			return err
		}); err != nil {
			t.Fatalf("cut %d, after %d of %d operations: %v; CUPOLA_SEED=%d", n, moment, disk.Now(), err, seed)
		}
		if err := os.Remove(image); err != nil {
			t.Fatal(err)
		}
	}
	return lost
}

// missingOf counts what was acknowledged and is not in a data directory, as the
// next daemon opens it.
func missingOf(t *testing.T, dir string, acks []acknowledged) (missing int, err error) {
	s, err := Open(Config{Dir: filepath.Join(dir, "db")})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	blobs, err := blob.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		return 0, err
	}
	there := map[string]string{}
	if err := s.Read(t.Context(), func(tx *Tx) error {
		orgs, err := Orgs.All(tx)
		for _, o := range orgs {
			there[o.Name] = o.Labels["digest"]
		}
		return err
	}); err != nil {
		return 0, err
	}
	for _, a := range acks {
		if there[a.name] != a.digest {
			missing++
		}
		delete(there, a.name)
		if whole, err := isWhole(blobs, a.digest); err != nil {
			return missing, err
		} else if !whole {
			missing++
		}
	}
	for name, digest := range there { // a row that no client was told of names no less
		if whole, err := isWhole(blobs, digest); err != nil || !whole {
			t.Logf("row %s names a blob that is not whole: %v", name, err)
			missing++
		}
	}
	return missing, nil
}

func isWhole(blobs *blob.Store, digest string) (bool, error) {
	f, err := blobs.Open(digest)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrDamaged) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)) == digest, err
}
