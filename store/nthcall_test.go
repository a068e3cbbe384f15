//go:build linux

package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/store/blob"
	"cupola/test/powercut"
)

const (
	nthCalls      = 24 // that fail in CI, each in a separate run; CUPOLA_NTH_CALLS asks for more, or "all"
	writesOfFault = 20
)

// TestNthCallFails has one call of the file system fail while rows and blobs are
// written, a different one each time. What was acknowledged is there when the
// files are opened again, also after a power cut; the write of the failure says
// what it was; and those after it succeed.
func TestNthCallFails(t *testing.T) {
	seed := powerCutSeed(t)
	all := writeThroughFault(t, 0, 0)
	t.Logf("%d calls, CUPOLA_SEED=%d", all, seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	order := rng.Perm(all)
	if text := os.Getenv("CUPOLA_NTH_CALLS"); text != "all" {
		n := nthCalls
		if text != "" {
			var err error
			if n, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
		order = order[:min(n, all)]
	}
	for _, n := range order {
		errno := []syscall.Errno{syscall.EIO, syscall.ENOSPC}[rng.IntN(2)]
		t.Run(fmt.Sprintf("%d %v", n+1, errno), func(t *testing.T) { writeThroughFault(t, n+1, errno) })
	}
}

// writeThroughFault has another process write while the nth call fails, and
// returns how many calls there were.
func writeThroughFault(t *testing.T, nth int, errno syscall.Errno) (calls int) {
	t.Helper()
	top := t.TempDir()
	disk, err := powercut.NewFailing(top, nth, errno)
	if err != nil {
		t.Fatal(err)
	}
	acks, said := writerOf(t, disk.Dir)
	calls = disk.Calls()
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(acks, func(a acknowledged) bool { return a.name == lastWrite }) {
		t.Errorf("%s: the last write was not acknowledged: %s", disk.Failed(), said)
	}
	if nth > 0 && disk.Failed() == "" {
		t.Logf("call %d was not made", nth) // how many there are is not the same each time
	}
	restarted := filepath.Join(top, "restarted")
	if err := disk.Restart(restarted); err != nil {
		t.Fatal(err)
	}
	for what, dir := range map[string]string{"kill": disk.Files, "power cut": restarted} {
		if missing, err := missingOf(t, dir, acks); err != nil || missing > 0 {
			t.Errorf("after a failed %s and a %s, %d of what was acknowledged is missing: %v; %s", disk.Failed(), what, missing, err, said)
		}
	}
	return calls
}

// writerOf runs a process that writes, and gives what was acknowledged to it and
// what else it said.
func writerOf(t *testing.T, dir string) (acks []acknowledged, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWriteThroughFault$", "-test.v")
	cmd.Env = append(os.Environ(), "CUPOLA_FAULT_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the writer: %v", err)
	}
	var rest strings.Builder
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "acknowledged" {
			acks = append(acks, acknowledged{name: f[1], digest: f[2]})
		} else {
			fmt.Fprintln(&rest, lines.Text())
		}
	}
	return acks, rest.String()
}

var lastWrite = fmt.Sprintf("write-%d", writesOfFault-1)

// TestWriteThroughFault is the process that writes for the test above. It opens
// the store again where that failed, as the next daemon would, and writes once
// more what failed.
func TestWriteThroughFault(t *testing.T) {
	dir := os.Getenv("CUPOLA_FAULT_DIR")
	if dir == "" {
		t.Skip("it is started by the test of failing calls")
	}
	s, blobs, err := openBoth(dir)
	if err != nil {
		fmt.Println("open:", err)
		if s, blobs, err = openBoth(dir); err != nil {
			t.Fatal("open again:", err)
		}
	}
	put := func(content []byte) (string, error) {
		b, err := blobs.Put(t.Context(), strings.NewReader(string(content)))
		return b.Digest, err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	failures := 0
	for n := range writesOfFault {
		err := writeAndSay(s, put, fmt.Sprintf("write-%d", n), rng)
		if err == nil {
			continue
		}
		if failures++; !isNamed(err) {
			t.Errorf("write %d: %v; want an error that tells of the disk", n, err)
		}
		fmt.Println("write", n, err)
		if n == writesOfFault-1 {
			err = writeAndSay(s, put, lastWrite, rng)
			t.Log("again:", err)
		}
	}
	if failures > 1 {
		t.Errorf("one failing call failed %d writes", failures)
	}
	os.Exit(status(t)) // as a kill does: nothing is closed in order
}

func status(t *testing.T) int {
	if t.Failed() {
		return 1
	}
	return 0
}

func isNamed(err error) bool {
	return isFault(err) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC)
}

func openBoth(dir string) (*Store, *blob.Store, error) {
	s, err := Open(Config{Dir: filepath.Join(dir, "db")})
	if err != nil {
		return nil, nil, err
	}
	blobs, err := blob.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, blobs, nil
}
