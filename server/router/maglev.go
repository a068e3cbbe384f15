package router

import (
	"hash/fnv"
	"slices"
)

// maglev is the look-up table of Maglev's consistent hashing: for each slot the
// index of a name. Each name has nearly as many slots as any other, and most
// slots stay when a name comes or goes. It never changes.
type maglev struct {
	names []string // sorted
	slots []uint16
}

// The sizes of tables are primes. A table far larger than the number of names
// shares slots out evenly; few routes have more instances than the small one is
// for.
const (
	smallTable = 4093
	largeTable = 65521
	smallNames = smallTable / 10
)

// newMaglev makes the table of names, which are sorted, distinct and not none.
func newMaglev(names []string) *maglev {
	size := uint64(smallTable)
	if len(names) > smallNames {
		size = largeTable
	}
	names = names[:min(len(names), largeTable)]
	m := &maglev{names: names, slots: make([]uint16, size)}
	free := slices.Repeat([]bool{true}, int(size))
	at, skip := make([]uint64, len(names)), make([]uint64, len(names))
	for i, name := range names {
		h := hashOf(name)
		at[i], skip[i] = h%size, (h>>32)%(size-1)+1
	}
	// In turn, each name takes the next free slot of its permutation.
	for i, left := 0, size; left > 0; i, left = (i+1)%len(names), left-1 {
		for !free[at[i]] {
			at[i] = (at[i] + skip[i]) % size
		}
		free[at[i]], m.slots[at[i]] = false, uint16(i)
	}
	return m
}

// walk gives the names for a key, each once, the first choice first: those that
// follow its slot. It ends when yield says so.
func (m *maglev) walk(key string, yield func(name int) bool) {
	seen := make([]bool, len(m.names))
	start := int(hashOf(key) % uint64(len(m.slots)))
	for i, left := 0, len(m.names); i < len(m.slots) && left > 0; i++ {
		name := m.slots[(start+i)%len(m.slots)]
		if seen[name] {
			continue
		}
		seen[name] = true
		left--
		if !yield(int(name)) {
			return
		}
	}
}

// hashOf is the same in every process: a key stays with its instance when the
// daemon is restarted.
func hashOf(text string) uint64 {
	f := fnv.New64a()
	f.Write([]byte(text))
	h := f.Sum64()
	// FNV's high bits hardly depend on a text's end: mix them (splitmix64).
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
