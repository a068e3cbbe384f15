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
	t            testing.TB
	image, mount string
}

// newLoopDisk mounts a new ext4 of a size in bytes until the test ends. Root can
// fill it to the last block.
func newLoopDisk(t testing.TB, size int64) *loopDisk {
	t.Helper()
	needBinary(t)
	l := loopDiskFile(t)
	mustRun(t, "truncate", "-s", strconv.FormatInt(size, 10), l.image)
	mustRun(t, "mkfs.ext4", "-q", "-m", "0", l.image)
	if err := os.Mkdir(l.mount, 0o711); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "mount", "-o", "loop", l.image, l.mount)
	t.Cleanup(func() { mustRun(t, "umount", l.mount) })
	if err := os.Chmod(l.mount, 0o711); err != nil {
		t.Fatal(err)
	}
	return l
}

// loopDiskFile is a disk that is neither made nor mounted.
func loopDiskFile(t testing.TB) *loopDisk {
	t.Helper()
	dir := newDaemonDir(t)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return &loopDisk{t: t, image: filepath.Join(dir, "disk"), mount: filepath.Join(dir, "mount")}
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

// start starts a daemon with its data on the disk, until the test ends.
func (l *loopDisk) start(flags ...string) *daemon {
	l.t.Helper()
	d := &daemon{t: l.t, binary: needBinary(l.t), dir: l.subdirectory(), addr: "127.0.0.1:0", flags: flags, log: &logBuffer{}, admin: &adminSession{}}
	l.t.Cleanup(func() {
		l.free() // or nothing could be cleaned up
		d.destroy()
	})
	d.start()
	return d
}

// copied is the disk as a power cut at this moment would leave it: what has
// reached the device, and nothing of what the kernel holds in memory.
func (l *loopDisk) copied() *loopDisk {
	l.t.Helper()
	other := loopDiskFile(l.t)
	mustRun(l.t, "cp", "--sparse=always", l.image, other.image)
	return other
}

func (l *loopDisk) filler() string { return filepath.Join(l.mount, "filler") }

// fill takes every byte that is free, until free is called.
func (l *loopDisk) fill() {
	l.t.Helper()
	f, err := os.OpenFile(l.filler(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	at, chunk := int64(0), int64(64<<20)
	for chunk >= 1024 {
		switch err := unix.Fallocate(int(f.Fd()), 0, at, chunk); {
		case err == nil:
			at += chunk
		case errors.Is(err, unix.ENOSPC):
			chunk /= 2
		default:
			l.t.Fatal(err)
		}
	}
}

// free gives back what fill took.
func (l *loopDisk) free() {
	l.t.Helper()
	if err := os.RemoveAll(l.filler()); err != nil {
		l.t.Error(err)
	}
}
