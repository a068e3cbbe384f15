package rootfs

import "cupola/runtime/users"

// lowerDir is where, in a container's directory, the store is mounted with the owners that the container sees, while its
// root is made.
const lowerDir = "lower"

func (s *Store) lowerPath(id string) string { return s.path("run", id, lowerDir) }

// Shifts says why roots cannot have users other than those on disk; nil where they can: the kernel has idmapped mounts
// (Linux 5.19 for overlays), and so has the store's file system.
func (s *Store) Shifts() error { return s.unshiftable }

// shifted tells whether a container's users are others than those on disk.
func (s *Store) shifted(ids IDMap) bool { return ids != IDMap{} && ids != s.cfg.IDMap }

// users are those of the host that a container's are.
func (s *Store) users(rec record) IDMap {
	if s.shifted(rec.Users) {
		return rec.Users
	}
	return s.cfg.IDMap
}

func (m IDMap) users() users.Range { return users.Range(m) }
