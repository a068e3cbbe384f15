// Package root mounts the root file systems of containers, with a disk quota.
//
// A root is an overlay: the stack's files below, then the container's layers (a droplet, buildpacks), each unpacked once and shared
// read-only by all roots that have it, and on top a writable directory in a file system of the container's size. All state is in
// the file system, in mounts and in loop devices: after a crash List finds what the crashed daemon left, and Unmount removes it
// whatever state it is in.
package root

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"cupola/rootfs/disk"
	"cupola/rootfs/internal/keylock"
	"cupola/rootfs/internal/store"
	"cupola/rootfs/layer"
	"cupola/rootfs/stack"
	"cupola/rootfs/tree"
	"cupola/runtime/users"
)

// rootsDir is the directory that the roots have in a store.
const rootsDir = "run"

const runTrash = ".trash"

// Roots mounts roots. Its methods may be called at the same time.
type Roots struct {
	store       *store.Store
	stacks      *stack.Stacks
	layers      *layer.Cache
	disks       *disk.Disks
	trash       *tree.Trash // of containers' directories: no rename moves them out of the private mount of rootsDir
	locks       keylock.Locks
	unshiftable error

	mu    sync.Mutex // guards the entries of rootsDir, and its mount, and what follows
	ready []readyDisk
	soon  *time.Timer // makes them
}

// New opens the roots of a store. It leaves containers alone that may still run.
func New(s *store.Store, stacks *stack.Stacks, layers *layer.Cache, disks *disk.Disks) (*Roots, error) {
	r := &Roots{store: s, stacks: stacks, layers: layers, disks: disks, trash: tree.NewTrash(s.Path(rootsDir, runTrash), s.Log), unshiftable: tryShift(s)}
	if err := r.dropSpares(); err != nil {
		return nil, err
	}
	r.trash.Sweep()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r, r.releaseRun()
}

// MakeDirs makes the directories of roots in a new store. All may pass the upper one, and then containers' directories that only
// the container's root can pass: otherwise others could read the files of apps.
func MakeDirs(s *store.Store) error {
	for _, name := range []string{"", runTrash, runSpare, runReady} {
		if err := os.Mkdir(s.Path(rootsDir, name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Chmod(s.Path(rootsDir), 0o711)
}

// Close waits for deletions in the background. Mounts of containers stay.
func (s *Roots) Close() {
	s.mu.Lock()
	s.dropReady(len(s.ready))
	s.mu.Unlock()
	s.trash.Wait()
}

// openTo lets the root of a container pass a directory, and no other user of the machine.
func openTo(ids users.Range, dir string) error {
	if tree.Privileged() {
		if err := os.Chown(dir, 0, int(ids.Host(0))); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o710)
}

// checkID refuses container IDs that are not a plain file name.
func checkID(id string) error {
	if id == "" || len(id) > 128 || id[0] == '.' {
		return fmt.Errorf("container id %q is not usable as a file name", id)
	}
	for _, c := range []byte(id) {
		if c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return fmt.Errorf("container id %q is not usable as a file name", id)
		}
	}
	return nil
}
