// Package volume keeps directories that outlive the containers that write to
// them, each of a size that holds.
//
// A volume is a directory of the store's, in which lie its disk and the mark of
// one that is whole. A volume that a crash left half made is made again; the next Store
// deletes one that was half deleted.
package volume

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"cupola/rootfs/disk"
	"cupola/runtime/durable"
	"cupola/runtime/pattern"
	"cupola/runtime/users"
)

// Config says where a Store keeps its volumes.
type Config struct {
	// Dir is made 0711. In it lie the volumes, which only root passes, and places
	// where they are shown, each of which only the root of its container passes.
	Dir string
	// Disks must have been made for Dir's file system.
	Disks *disk.Disks
	// Users own what is in volumes, whichever the users of the host are that a
	// container has; Owner is the one of them that new volumes belong to.
	Users users.Range
	Owner uint32
	// Holder is the command, without its last arguments, that runs Hold with the
	// directory and the time that are those, its standard input and output. Save
	// needs it.
	Holder []string
	Log    *slog.Logger // nil discards
}

// Store keeps volumes. Its methods may be called at once.
type Store struct {
	cfg    Config
	saving sync.Mutex // while one is copied, and none may be removed; taken before mu
	mu     sync.Mutex // while volumes come and go
}

// whole marks a volume that was made to the end; trash begins the name of one
// that is being deleted.
const (
	whole = "whole"
	trash = ".trash-"
)

// New opens the store, deletes what an earlier one was about to delete or to put in
// the place of a volume, and lets go of what it held.
func New(cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg}
	if err := errors.Join(durable.MkdirAll(cfg.Dir, 0o700), os.Chmod(cfg.Dir, 0o711)); err != nil {
		return nil, fmt.Errorf("make the directory of volumes: %w", err)
	}
	entries, err := os.ReadDir(cfg.Dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), trash) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(cfg.Dir, e.Name())))
			continue
		}
		if strings.HasSuffix(e.Name(), staged) {
			err = errors.Join(err, s.finishReplace(e.Name()))
			continue
		}
		err = errors.Join(err, disk.Thaw(filepath.Join(cfg.Dir, e.Name())))
	}
	return s, err
}

// open lets a container's root pass.
func open(dir string, root uint32) error {
	return errors.Join(os.Chown(dir, 0, int(root)), os.Chmod(dir, 0o710))
}

// Spec describes a volume to be made.
type Spec struct {
	Bytes int64 // that it holds
	// Shared lets every user of a container write to it, not only its owner.
	Shared bool
}

var nameRule = pattern.Lazy(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}$`)

func (s *Store) dir(name string) (string, error) {
	if !nameRule().MatchString(name) {
		return "", fmt.Errorf("volume %q: use letters, digits, '_' and '-'", name)
	}
	return filepath.Join(s.cfg.Dir, name), nil
}

// Create makes a volume. One that is there stays as it is.
func (s *Store) Create(name string, v Spec) error {
	dir, err := s.dir(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Lstat(filepath.Join(dir, whole)); err == nil {
		return nil
	}
	if err := s.removeLocked(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := s.fill(dir, v); err != nil {
		return errors.Join(fmt.Errorf("make volume %s: %w", name, err), s.removeLocked(dir))
	}
	return nil
}

// fill makes what is in a volume's directory, and sees it on the disk.
func (s *Store) fill(dir string, v Spec) error {
	if err := s.cfg.Disks.Create(dir, disk.Size{Bytes: v.Bytes, Durable: true}); err != nil {
		return err
	}
	data, mode := filepath.Join(dir, disk.Data), os.FileMode(0o700)
	if v.Shared {
		mode = 0o777
	}
	if err := errors.Join(open(dir, s.cfg.Users.Base), os.Chmod(data, mode), os.Chown(data, int(s.cfg.Owner), int(s.cfg.Owner))); err != nil {
		return err
	}
	return finish(dir)
}

// finish sees a volume on the disk, and marks it as whole.
func finish(dir string) error {
	for _, name := range []string{filepath.Join(dir, disk.Image), filepath.Join(dir, disk.Data)} {
		if err := durable.Sync(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, whole), nil, 0o600); err != nil {
		return err
	}
	return errors.Join(durable.Sync(dir), durable.Sync(filepath.Dir(dir)))
}

// open returns the directory of a volume, ready to be used.
func (s *Store) open(name string) (string, error) {
	dir, err := s.dir(name)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Lstat(filepath.Join(dir, whole)); err != nil {
		return "", fmt.Errorf("open volume %s: %w", name, err)
	}
	if err := s.cfg.Disks.Open(dir); err != nil {
		return "", fmt.Errorf("open volume %s: %w", name, err)
	}
	return filepath.Join(dir, disk.Data), nil
}

// Grow enlarges a volume; one that is as large stays as it is, and so does
// what is in it. That it is not in use is best: see disk.Disks.Grow.
func (s *Store) Grow(name string, bytes int64) error {
	s.saving.Lock() // one that is being copied cannot grow
	defer s.saving.Unlock()
	if _, err := s.open(name); err != nil {
		return err
	}
	dir, err := s.dir(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cfg.Disks.Grow(dir, disk.Size{Bytes: bytes, Durable: true}); err != nil {
		return fmt.Errorf("grow volume %s: %w", name, err)
	}
	return nil
}

// Copy makes a volume of the size of another one, with all that is in that, which nothing
// may use; ErrNone if there is none. What a killed Copy left is made again.
func (s *Store) Copy(from, to string) error {
	dir, err := s.opened(from)
	if err != nil {
		return err
	}
	next, err := s.dir(to)
	if err != nil {
		return err
	}
	s.saving.Lock() // one that is being saved cannot be closed
	defer s.saving.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.removeLocked(next); err != nil {
		return err
	}
	if err := s.copyLocked(dir, next); err != nil {
		return errors.Join(fmt.Errorf("copy volume %s: %w", from, err), s.removeLocked(next))
	}
	return nil
}

func (s *Store) copyLocked(from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	if err := s.cfg.Disks.Copy(from, to); err != nil {
		return err
	}
	if err := open(to, s.cfg.Users.Base); err != nil {
		return err
	}
	return finish(to)
}

// Remove deletes a volume and all that is in it. One that is not there is no
// error. Nothing may use it any longer. It waits until none is being copied.
func (s *Store) Remove(name string) error {
	dir, err := s.dir(name)
	if err != nil {
		return err
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.removeLocked(dir); err != nil {
		return fmt.Errorf("remove volume %s: %w", name, err)
	}
	return nil
}

// removeLocked takes the name away first, so that no crash leaves half a volume
// under it.
func (s *Store) removeLocked(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := s.cfg.Disks.Remove(dir); err != nil {
		return err
	}
	gone := filepath.Join(s.cfg.Dir, trash+rand.Text())
	if err := os.Rename(dir, gone); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// Used tells how many bytes a volume occupies.
func (s *Store) Used(name string) (int64, error) {
	dir, err := s.dir(name)
	if err != nil {
		return 0, err
	}
	return s.cfg.Disks.Used(dir)
}

// List returns the names of the volumes.
func (s *Store) List() (names []string, err error) {
	entries, err := os.ReadDir(s.cfg.Dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Teardown removes what volumes have in the kernel. Their content stays.
func (s *Store) Teardown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.hideAll(), Close(s.cfg.Dir))
}
