// Package powercut tests what survives a power cut. A Disk is a block device
// whose writes and flushes are recorded, with an ext4 on it; Image is what such a
// device may hold when the power fails at a moment of the record: all that was
// flushed, and of what was written since any part, torn anywhere between sectors.
// What file systems keep in memory alone is never in it.
//
// The device is a loop device on a file that this process serves by FUSE. So
// nothing of this process may use the file system: a page fault would wait for
// the process that has to serve it.
package powercut

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// Disk is a recorded disk. Its file system is mounted on Dir.
type Disk struct {
	Dir string

	top     string
	mounted bool
	server  *fuse.Server

	mu      sync.Mutex
	content []byte
	record  []op
	base    []byte // the content when the record began
}

// op is a write, or a flush when data is nil.
type op struct {
	at   int64
	data []byte
}

// New makes a disk of some bytes, with files in the directory top. The record
// begins with an empty file system.
func New(top string, bytes int64) (*Disk, error) {
	d := &Disk{Dir: filepath.Join(top, "fs"), top: top, content: make([]byte, bytes)}
	if err := d.open(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Disk) open() (err error) {
	at := filepath.Join(d.top, "device")
	if err := errors.Join(os.Mkdir(at, 0o700), os.Mkdir(d.Dir, 0o711)); err != nil {
		return err
	}
	root := &fs.Inode{}
	d.server, err = fs.Mount(at, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "powercut", Name: "powercut", MaxWrite: 1 << 20},
		OnAdd: func(ctx context.Context) {
			file := root.NewPersistentInode(ctx, &device{disk: d}, fs.StableAttr{Mode: syscall.S_IFREG})
			root.AddChild("disk", file, false)
		},
	})
	if err != nil {
		return fmt.Errorf("mount FUSE: %w", err)
	}
	file := filepath.Join(at, "disk")
	if err := run("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "nodiscard", "-J", "size=4", file); err != nil {
		return err
	}
	// Only what is synced is written before a minute has gone by.
	if err := run("mount", "-o", "loop,noatime,noinit_itable,commit=60", file, d.Dir); err != nil {
		return err
	}
	d.mounted = true
	if err := run("sync", "-f", d.Dir); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.base, d.record = slices.Clone(d.content), nil
	return nil
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// Now is the moment of the record: what was acknowledged before it is asked for
// must be in each Image of that moment and later.
func (d *Disk) Now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.record)
}

// End cuts the record off at a moment: what unmounting writes is not part of it.
func (d *Disk) End(moment int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record = d.record[:moment]
}

// Close unmounts the file system and takes the device away. The record stays.
func (d *Disk) Close() error {
	var errs []error
	if d.mounted {
		errs = append(errs, run("umount", d.Dir))
		d.mounted = false
	}
	if d.server != nil {
		errs = append(errs, d.unmountServer())
		d.server = nil
	}
	return errors.Join(errs...)
}

// unmountServer waits for the loop device to be freed: other programs open all
// of them for a moment, to find one that is free.
func (d *Disk) unmountServer() error {
	for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		if err := d.server.Unmount(); !errors.Is(err, syscall.EBUSY) || time.Now().After(end) {
			return err
		}
	}
}

// Replay makes images of later and later moments.
type Replay struct {
	disk    *Disk
	content []byte // all that was flushed before done
	done    int    // ops that are in content
}

// Replay begins with the empty file system. The record must have ended.
func (d *Disk) Replay() *Replay { return &Replay{disk: d, content: slices.Clone(d.base)} }

// Image writes a file with what the disk may hold after a power cut at a
// moment, which is not before that of the last call.
func (r *Replay) Image(file string, moment int, rng *rand.Rand) error {
	pending := r.advance(moment)
	for _, w := range pending {
		before := slices.Clone(r.content[w.at:][:len(w.data)])
		defer copy(r.content[w.at:], before)
		w.writePart(r.content, rng)
	}
	// A container that starts may have the last image mounted for a moment longer:
	// written to, that file system would be mounted again.
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(int64(len(r.content))), writeSparse(f, r.content), f.Close())
}

// advance applies all that is flushed at a moment, and returns the writes since
// in an order that the disk may do them in.
func (r *Replay) advance(moment int) (pending []op) {
	record := r.disk.record[:moment]
	for n := r.done; n < len(record); n++ {
		if record[n].data != nil {
			continue
		}
		for _, w := range record[r.done:n] {
			copy(r.content[w.at:], w.data)
		}
		r.done = n
	}
	for _, w := range record[r.done:] {
		if w.data != nil {
			pending = append(pending, w)
		}
	}
	return pending
}

// writePart writes a write, or a part of it, or none.
func (w op) writePart(image []byte, rng *rand.Rand) {
	switch rng.IntN(3) {
	case 0:
	case 1:
		copy(image[w.at:], w.data)
	case 2:
		for at := 0; at < len(w.data); at += sector {
			if rng.IntN(2) == 0 {
				copy(image[w.at+int64(at):], w.data[at:min(at+sector, len(w.data))])
			}
		}
	}
}

// writeSparse leaves holes where there are zeros.
func writeSparse(f *os.File, content []byte) error {
	const block = 64 << 10
	zeros := make([]byte, block)
	for at := 0; at < len(content); at += block {
		part := content[at:min(at+block, len(content))]
		if string(part) == string(zeros[:len(part)]) {
			continue
		}
		if _, err := f.WriteAt(part, int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// Mount mounts an image, which replays its journal, calls f with the directory
// and unmounts it.
func Mount(image, dir string, f func() error) error {
	if err := run("mount", "-o", "loop,noatime", image, dir); err != nil {
		return err
	}
	return errors.Join(f(), run("umount", dir))
}
