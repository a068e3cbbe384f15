package bulkhead

import "sync"

// Share splits slots among keys, like apps, users or addresses. A key may take
// one more while it has fewer than factor times as many as are free. So one key
// alone gets factor/(factor+1) of all, two get as much each as is left, and
// however many there are, the next one finds a slot: no key needs a limit that
// would be too low for an honest one and too high in competition with others.
type Share[K comparable] struct {
	limit, factor int

	mu      sync.Mutex
	used    int
	by      map[K]int
	refused int64
}

// NewShare makes limit slots.
func NewShare[K comparable](limit, factor int) *Share[K] {
	return &Share[K]{limit: limit, factor: factor, by: map[K]int{}}
}

// Take takes a slot if the key may have one.
func (s *Share[K]) Take(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[key] >= s.factor*(s.limit-s.used) {
		s.refused++
		return false
	}
	s.by[key]++
	s.used++
	return true
}

// Put gives a slot back.
func (s *Share[K]) Put(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	if s.by[key]--; s.by[key] == 0 {
		delete(s.by, key)
	}
}

// Used is how many slots are taken.
func (s *Share[K]) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// Refused is how often a slot was refused since the start.
func (s *Share[K]) Refused() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Limit is how many slots there are.
func (s *Share[K]) Limit() int { return s.limit }
