package store

import (
	"context"
	"sync"
)

// Change is one row before and after a write; nil if it did not exist before, or was
// deleted. It is an *lrp.Actual, a *BBSDesired or a *BBSTask.
type Change struct {
	Before, After any
	Crash         bool // of an *lrp.Actual: its instance crashed
}

// followers get every change, in the order of the commits.
type followers struct {
	mu  sync.Mutex
	all map[*follower]bool
}

type follower struct{ tell func([]Change) }

func newFollowers() *followers { return &followers{all: map[*follower]bool{}} }

// Follow calls tell with the changes of each transaction that is begun from now
// on, in order, until stop is called. tell must be quick, and use no
// transaction: the next write waits for it.
func (s *Store) Follow(tell func([]Change)) (stop func()) {
	slot, err := s.writers.Acquire(context.Background(), "")
	if err != nil {
		panic(err) // of a context that never ends
	}
	defer slot.Release()
	s.endBatch() // its writes did not note their changes
	f := &follower{tell}
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	s.followers.all[f] = true
	return func() {
		s.followers.mu.Lock()
		defer s.followers.mu.Unlock()
		delete(s.followers.all, f)
	}
}

func (f *followers) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all) > 0
}

func (f *followers) publish(changes []Change) {
	if len(changes) == 0 {
		return
	}
	f.mu.Lock()
	var all []*follower
	for one := range f.all {
		all = append(all, one)
	}
	f.mu.Unlock()
	for _, one := range all {
		one.tell(changes)
	}
}

// note keeps a change for the followers.
func (tx *Tx) note(c Change) {
	if tx.followed {
		tx.changes = append(tx.changes, c)
	}
}
