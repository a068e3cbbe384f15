package root

import (
	"errors"

	"cupola/rootfs/internal/store"
	"cupola/rootfs/overlay"
	"cupola/rootfs/tree"
	"cupola/runtime/users"
)

// lowerDir is where, in a container's directory, the store is mounted with the owners that the container sees, while its
// root is made.
const lowerDir = "lower"

func (s *Roots) lowerPath(id string) string { return s.store.Path(rootsDir, id, lowerDir) }

// Shifts reports why roots cannot have other users than those on disk; nil where they can: the kernel has idmapped mounts (Linux
// 5.19 for overlays), and so has the store's file system.
func (s *Roots) Shifts() error { return s.unshiftable }

// tryShift finds out what Shifts reports. Only root can try.
func tryShift(s *store.Store) error {
	if !tree.Privileged() || s.IDs.Size == 0 {
		return errors.New("this process cannot map users")
	}
	return s.Trash.Scratch(func(dir string) error { return overlay.TryShift(dir, s.IDs) })
}

// shifted reports whether a container's users are others than those on disk.
func (s *Roots) shifted(ids users.Range) bool { return ids != users.Range{} && ids != s.store.IDs }

// users are the host's IDs of a container's users.
func (s *Roots) users(rec record) users.Range {
	if s.shifted(rec.Users) {
		return rec.Users
	}
	return s.store.IDs
}
