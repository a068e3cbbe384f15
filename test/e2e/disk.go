package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// LoopDisk is a file system in a file.
type LoopDisk struct {
	T            testing.TB
	Image, Mount string
}

// NewLoopDisk mounts a new ext4 of a size in bytes until the test ends. Root can
// fill it to the last block.
func NewLoopDisk(t testing.TB, size int64) *LoopDisk {
	t.Helper()
	NeedBinary(t)
	l := loopDiskFile(t)
	MustRun(t, "truncate", "-s", strconv.FormatInt(size, 10), l.Image)
	MustRun(t, "mkfs.ext4", "-q", "-m", "0", l.Image)
	if err := os.Mkdir(l.Mount, 0o711); err != nil {
		t.Fatal(err)
	}
	MustRun(t, "mount", "-o", "loop", l.Image, l.Mount)
	t.Cleanup(func() {
		Eventually(t, 20*time.Second, func() string { // what was killed on it ends a moment later
			if out, err := exec.Command("umount", l.Mount).CombinedOutput(); err != nil {
				return string(out)
			}
			return ""
		})
	})
	if err := os.Chmod(l.Mount, 0o711); err != nil {
		t.Fatal(err)
	}
	return l
}

// loopDiskFile is a disk that is neither made nor mounted.
func loopDiskFile(t testing.TB) *LoopDisk {
	t.Helper()
	dir := NewDir(t)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return &LoopDisk{T: t, Image: filepath.Join(dir, "disk"), Mount: filepath.Join(dir, "mount")}
}

// MustRun runs a command that must succeed.
func MustRun(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// Subdirectory is a place on the disk for a data directory.
func (l *LoopDisk) Subdirectory() string { return filepath.Join(l.Mount, "data") }

// Start starts a daemon with its data on the disk, until the test ends.
func (l *LoopDisk) Start(flags ...string) *Daemon {
	l.T.Helper()
	d := &Daemon{T: l.T, Binary: NeedBinary(l.T), Dir: l.Subdirectory(), Addr: "127.0.0.1:0", Flags: flags, Log: &LogBuffer{}, Admin: &AdminSession{}}
	l.T.Cleanup(func() {
		l.Free() // or nothing could be cleaned up
		d.Destroy()
	})
	d.Start()
	return d
}

// WaitFree waits until nothing has the disk mounted any longer. A container of
// another test that starts has all of the machine's mounts for a moment; where
// the disk is mounted again meanwhile, it is still the read-only file system.
func (l *LoopDisk) WaitFree() {
	l.T.Helper()
	Eventually(l.T, time.Minute, func() string {
		out, err := exec.Command("losetup", "--associated", l.Image).CombinedOutput()
		if err != nil {
			return fmt.Sprintf("losetup: %v\n%s", err, out)
		}
		return string(out)
	})
}

// Copied is the disk as a power cut at this moment would leave it: what has
// reached the device, and nothing of what the kernel holds in memory.
func (l *LoopDisk) Copied() *LoopDisk {
	l.T.Helper()
	other := loopDiskFile(l.T)
	MustRun(l.T, "cp", "--sparse=always", l.Image, other.Image)
	return other
}

func (l *LoopDisk) filler() string { return filepath.Join(l.Mount, "filler") }

// Fill takes every byte that is free, until free is called.
func (l *LoopDisk) Fill() {
	l.T.Helper()
	f, err := os.OpenFile(l.filler(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		l.T.Fatal(err)
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
			l.T.Fatal(err)
		}
	}
}

// FillBut is Fill, but for some bytes.
func (l *LoopDisk) FillBut(left int64) {
	l.T.Helper()
	l.Free()
	l.Fill()
	info, err := os.Stat(l.filler())
	if err == nil {
		err = os.Truncate(l.filler(), max(0, info.Size()-left))
	}
	if err != nil {
		l.T.Fatal(err)
	}
}

// Free gives back what fill took.
func (l *LoopDisk) Free() {
	l.T.Helper()
	if err := os.RemoveAll(l.filler()); err != nil {
		l.T.Error(err)
	}
}
