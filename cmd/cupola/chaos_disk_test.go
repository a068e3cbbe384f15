package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// loopDisk is a file system in a file.
type loopDisk struct {
	image, mount string
}

// newLoopDisk mounts a new ext4 of a size in bytes until the test ends.
func newLoopDisk(t testing.TB, size int64) *loopDisk {
	t.Helper()
	dir := newDaemonDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	disk := &loopDisk{image: filepath.Join(dir, "disk"), mount: filepath.Join(dir, "mount")}
	mustRun(t, "truncate", "-s", strconv.FormatInt(size, 10), disk.image)
	mustRun(t, "mkfs.ext4", "-q", "-m", "0", disk.image)
	disk.attach(t)
	return disk
}

func (l *loopDisk) attach(t testing.TB) {
	t.Helper()
	if err := os.Mkdir(l.mount, 0o711); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "mount", "-o", "loop", l.image, l.mount)
	t.Cleanup(func() { mustRun(t, "umount", l.mount) })
	if err := os.Chmod(l.mount, 0o711); err != nil {
		t.Fatal(err)
	}
}

// mustRun runs a command that must succeed.
func mustRun(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// subdirectory is a place on the disk for a data directory.
func (l *loopDisk) subdirectory() string { return filepath.Join(l.mount, "data") }

// copied is the disk as a power cut at this moment would leave it: what has
// reached the device, and nothing of what the kernel holds in memory.
func (l *loopDisk) copied(t testing.TB) *loopDisk {
	t.Helper()
	dir := newDaemonDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	other := &loopDisk{image: filepath.Join(dir, "disk"), mount: filepath.Join(dir, "mount")}
	mustRun(t, "cp", "--sparse=always", l.image, other.image)
	return other
}

// fill takes every byte that is free, until release is called.
func (l *loopDisk) fill(t testing.TB) (release func()) {
	t.Helper()
	name := filepath.Join(l.mount, "filler")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	at, chunk := int64(0), int64(64<<20)
	for chunk >= 1024 {
		switch err := unix.Fallocate(int(f.Fd()), 0, at, chunk); {
		case err == nil:
			at += chunk
		case errors.Is(err, unix.ENOSPC):
			chunk /= 2
		default:
			t.Fatal(err)
		}
	}
	return func() {
		if err := errors.Join(f.Close(), os.Remove(name)); err != nil {
			t.Error(err)
		}
	}
}
