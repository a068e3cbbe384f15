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

func (r Range) String() string { return fmt.Sprintf("%d to %d", r.Base, r.Base+r.Size-1) }

// Shared gives all containers the same range: where files cannot be shown as
// another range's (see Shift), they have the one that owns them on disk.
type Shared Range

// Claim gives the one range.
func (s Shared) Claim(string) (Range, error) { return Range(s), nil }

// Release frees nothing.
func (s Shared) Release(string) error { return nil }
