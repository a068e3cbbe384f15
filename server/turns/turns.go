// Package turns shares a few slots fairly among many who want them.
package turns

import (
	"context"
	"slices"
	"sync"
)

// Turns are slots. Nobody has more than a part of them, and one that becomes
// free goes to who has the fewest; among those, to who came first.
type Turns struct {
	each int

	mu      sync.Mutex
	free    int
	held    map[string]int
	waiting []*waiter // in the order in which they came
}

type waiter struct {
	who   string
	ready chan struct{} // closed when it has a slot
}

// New makes total slots, of which one can have each.
func New(total, each int) *Turns {
	return &Turns{each: each, free: total, held: map[string]int{}}
}

// Take waits for a slot. The error is that of ctx, which ended before; else
// done, to be called once, gives the slot back.
func (t *Turns) Take(ctx context.Context, who string) (done func(), err error) {
	w := &waiter{who, make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	t.grant()
	t.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		t.leave(w)
		return nil, context.Cause(ctx)
	}
	return func() { t.put(who) }, nil
}

// leave takes a waiter away, or gives back what it has been given.
func (t *Turns) leave(w *waiter) {
	t.mu.Lock()
	n := slices.Index(t.waiting, w)
	if n >= 0 {
		t.waiting = slices.Delete(t.waiting, n, n+1)
	}
	t.mu.Unlock()
	if n < 0 {
		t.put(w.who)
	}
}

func (t *Turns) put(who string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	if t.held[who]--; t.held[who] == 0 {
		delete(t.held, who)
	}
	t.grant()
}

// grant gives free slots away; t.mu is held.
func (t *Turns) grant() {
	for t.free > 0 {
		next := -1
		for n, w := range t.waiting {
			if has := t.held[w.who]; has < t.each && (next < 0 || has < t.held[t.waiting[next].who]) {
				next = n
			}
		}
		if next < 0 {
			return
		}
		w := t.waiting[next]
		t.waiting = slices.Delete(t.waiting, next, next+1)
		t.free--
		t.held[w.who]++
		close(w.ready)
	}
}
