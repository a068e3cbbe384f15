package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"cupola/runtime/durable"
	"cupola/store"
)

// Default is the data directory of a daemon that is given no other.
const Default = "/var/lib/cupola"

// ScratchPrefix begins the names of directories in which a backup is gathered.
// Opening the data directory deletes those that a killed process left.
const ScratchPrefix = "backup-"

// ErrInUse says that a daemon, or a command, holds the data directory.
var ErrInUse = errors.New("is in use by another cupola")

// FixReadOnly says what an operator does about a disk that became read-only.
const FixReadOnly = "find out why in the kernel's log, check the disk with fsck and mount it writable"

// Dir is a data directory that this process holds until Close.
type Dir struct {
	path string
	log  *slog.Logger
	lock *os.File
}

// Open makes the data directory and takes its lock. Other users may pass
// through the directory, since containers reach their roots through it, but not
// list it. The error wraps ErrInUse where another process holds it.
//
// The process's umask becomes 022: modes are what they are given as, for containers'
// users too, on a machine whose root has 027 or 077 by a rule of hardening.
func Open(path string, log *slog.Logger) (*Dir, error) {
	syscall.Umask(0o022)
	if err := durable.MkdirAll(path, 0o711); err != nil {
		return nil, err
	}
	d, err := take(path, log, os.O_CREATE|os.O_RDWR)
	if errors.Is(err, syscall.EROFS) {
		return nil, fmt.Errorf("%w: %s; what runs of it is ended by 'sudo cupola cleanup --data-dir %s'", err, FixReadOnly, path)
	}
	if err != nil {
		return nil, err
	}
	if err := d.prepare(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// OpenReadOnly takes the lock of a data directory whose disk can only be read.
func OpenReadOnly(path string, log *slog.Logger) (*Dir, error) { return take(path, log, os.O_RDONLY) }

func take(path string, log *slog.Logger, flags int) (*Dir, error) {
	lock, err := os.OpenFile(filepath.Join(path, "lock"), flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s %w: stop that one, or give --data-dir", path, ErrInUse)
	}
	return &Dir{path: path, log: log, lock: lock}, nil
}

// prepare deletes what killed processes left, and writes the directory's name
// into its lock, for those who find the lock by its inode.
func (d *Dir) prepare() error {
	stale, err := filepath.Glob(d.Path(ScratchPrefix + "*"))
	for _, dir := range stale {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	// An older daemon fetched buildpacks into tmp.
	if err := errors.Join(err, os.RemoveAll(d.Path("tmp"))); err != nil {
		return err
	}
	_, err = d.lock.WriteAt([]byte(d.path+"\n"), 0)
	return err
}

// Close releases the lock.
func (d *Dir) Close() error { return d.lock.Close() }

// Path is the path of a name in the directory; without a name, of the directory.
func (d *Dir) Path(name ...string) string {
	return filepath.Join(append([]string{d.path}, name...)...)
}

// Owner tells the kernel objects of this directory's daemon from others'.
func (d *Dir) Owner() Owner { return OwnerOf(d.path) }

// CheckReachable refuses a data directory whose files containers cannot reach:
// their users have no rights of root's, and all stagings would fail.
func (d *Dir) CheckReachable() error {
	real, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return err
	}
	for _, dir := range []string{d.path, real} {
		for ; dir != "/"; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				return err
			}
			if info.Mode().Perm()&0o001 == 0 {
				return fmt.Errorf("containers reach their files through %s, which does not let other users pass (mode %#o): run 'chmod o+x %s', or give another --data-dir", dir, info.Mode().Perm(), dir)
			}
		}
	}
	return nil
}

// writeLine writes a file of one line that all users may read, unless it has
// that content already: a full disk is not in the way of cleaning up.
func writeLine(name, line string) error { return durable.Ensure(name, []byte(line+"\n"), 0o644) }

// ContainerStates are the IDs of the containers that the cell keeps a directory
// of, which is the last thing of a container to go.
func (d *Dir) ContainerStates() (ids []string, err error) {
	entries, err := os.ReadDir(d.Path("cell"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, err
}

// IsDiskFault reports whether an error says that the disk is full or cannot be
// written.
func IsDiskFault(err error) bool {
	return errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrIO) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}
