// Package store is what the parts of a store of root file systems share: its directory, who owns its files, and leases that
// keep files from being collected while they are in use.
package store

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cupola/rootfs/tree"
	"cupola/rootfs/unpack"
	"cupola/runtime/users"
)

// Store is the directory that the parts share.
type Store struct {
	Dir    string      // a real path, since mountinfo and loop devices name those
	IDs    users.Range // who owns the files on disk
	Limits unpack.Limits
	Trash  *tree.Trash
	Log    *slog.Logger
	// Mounted returns the names of what the roots of containers are made of.
	Mounted func() (map[string]bool, error)

	mu   sync.Mutex
	held map[string]int
}

// Path is a path in the store.
func (s *Store) Path(elem ...string) string {
	return filepath.Join(append([]string{s.Dir}, elem...)...)
}

// Hold finds names and leases what they name until release is called. Nothing is collected between the two steps.
func (s *Store) Hold(find func() (names []string, err error)) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := find()
	if err != nil {
		return nil, err
	}
	s.lease(names)
	return func() { s.release(names) }, nil
}

// HoldNames is Hold of known names.
func (s *Store) HoldNames(names ...string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease(names)
	return func() { s.release(names) }
}

// lease counts names, where s.mu is held.
func (s *Store) lease(names []string) {
	if s.held == nil {
		s.held = map[string]int{}
	}
	for _, name := range names {
		s.held[name]++
	}
}

func (s *Store) release(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.held[name]--; s.held[name] == 0 {
			delete(s.held, name)
		}
	}
}

// Collect calls do, which may remove what used does not report: what is neither leased nor mounted. Until it returns, no lease
// begins or ends.
func (s *Store) Collect(do func(used func(name string) bool) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	mounted, err := s.Mounted()
	if err != nil {
		return err
	}
	return do(func(name string) bool { return mounted[name] || s.held[name] > 0 })
}

// Sweep puts into the trash the entries of a directory that keep does not want. age is the time since an entry changed.
func (s *Store) Sweep(ctx context.Context, dir string, keep func(name string, age time.Duration) bool) error {
	entries, err := os.ReadDir(s.Path(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if keep(e.Name(), time.Since(info.ModTime())) {
			continue
		}
		if err := s.Trash.Put(s.Path(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
