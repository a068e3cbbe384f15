package bulkhead

import (
	"container/list"
	"net/netip"
	"sync"
)

// Strangers are connections on which nothing was asked for yet, or any more.
// One more than the limit ends another: the oldest of the address that has the
// most. So newcomers are always let in, and an address with many slow clients
// pushes out only its own.
type Strangers struct {
	limit int

	mu  sync.Mutex
	all *list.List // of *Stranger, the oldest first
	by  map[netip.Prefix]int
}

// Stranger is one of them.
type Stranger struct {
	address netip.Prefix
	end     func()
	at      *list.Element // nil once it is none any more
}

// NewStrangers makes an empty set.
func NewStrangers(limit int) *Strangers {
	return &Strangers{limit: limit, all: list.New(), by: map[netip.Prefix]int{}}
}

// Add adds a connection, and reports whether another was ended for it. end is
// called, once at most, to end it.
func (s *Strangers) Add(address netip.Prefix, end func()) (added *Stranger, pushed bool) {
	added = &Stranger{address: address, end: end}
	victim := s.push(added)
	if victim != nil {
		victim.end()
	}
	return added, victim != nil
}

// push adds a connection and removes the one that has to end for it, if any.
func (s *Strangers) push(added *Stranger) (victim *Stranger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all.Len() >= s.limit {
		if victim = s.victimLocked(); victim != nil {
			s.removeLocked(victim)
		}
	}
	added.at = s.all.PushBack(added)
	s.by[added.address]++
	return victim
}

// victimLocked is the oldest of the address that has the most.
func (s *Strangers) victimLocked() *Stranger {
	most := 0
	for _, n := range s.by {
		most = max(most, n)
	}
	for e := s.all.Front(); e != nil; e = e.Next() {
		if one, _ := e.Value.(*Stranger); s.by[one.address] == most {
			return one
		}
	}
	return nil
}

// Remove reports whether the connection was still one of them: else it is being
// ended.
func (s *Strangers) Remove(one *Stranger) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeLocked(one)
}

func (s *Strangers) removeLocked(one *Stranger) bool {
	if one.at == nil {
		return false
	}
	s.all.Remove(one.at)
	one.at = nil
	if s.by[one.address]--; s.by[one.address] == 0 {
		delete(s.by, one.address)
	}
	return true
}

// Len is how many there are.
func (s *Strangers) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Len()
}

// Limit is how many there may be.
func (s *Strangers) Limit() int { return s.limit }
