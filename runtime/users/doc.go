// Package users gives each container its own users of the host: a range of user
// and group IDs that nothing else on the machine has, and user namespaces that
// belong to the first ID of that range.
//
// The kernel counts inotify instances, pending signals, message queues, locked
// memory, pipes and descriptors in flight by user. What it counts inside a user
// namespace it also counts for the namespace's owner outside. With its own range
// and a namespace owned by that range, a container can exhaust neither another
// container's limits nor those of the host's root.
//
// Files that containers share keep one owner range on disk. Shift shows them to
// a container through an idmapped mount, as if they belonged to its range.
package users

import "fmt"

// Size is the number of IDs in a range: those that images use, including
// nobody (65534).
const Size = 1 << 16

// Range is Size user IDs of the host, and the group IDs of the same numbers. Its
// first is root in the container.
type Range struct{ Base, Size uint32 }

// nobody is the container's user of files whose owner the range does not have.
const nobody = 65534

// Host returns the host's ID for a container's ID. IDs outside the range are mapped to nobody (65534), or to the last ID of
// a range too small for it. The zero Range maps each ID to itself.
func (r Range) Host(id uint32) uint32 {
	switch {
	case r.Size == 0:
		return id
	case id < r.Size:
		return r.Base + id
	case nobody < r.Size:
		return r.Base + nobody
	}
	return r.Base + r.Size - 1
}

// Inside is the inverse of Host: the container's ID for a host's ID, or that ID itself when the range does not have it.
func (r Range) Inside(id uint32) uint32 {
	if r.Size > 0 && id >= r.Base && id-r.Base < r.Size {
		return id - r.Base
	}
	return id
}

func (r Range) String() string { return fmt.Sprintf("%d to %d", r.Base, r.Base+r.Size-1) }

// Shared gives all containers the same range: where files cannot be shown as
// another range's (see Shift), they have the one that owns them on disk.
type Shared Range

// Claim gives the one range.
func (s Shared) Claim(string) (Range, error) { return Range(s), nil }

// Release frees nothing.
func (s Shared) Release(string) error { return nil }
