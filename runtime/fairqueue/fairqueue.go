// Package fairqueue shares a few slots fairly among many users who want them.
package fairqueue

import (
	"context"
	"slices"
	"sync"
	"time"

	"cupola/runtime/fault"
)

// Queue is a number of slots and those who wait for one. No user has more than
// a part of the slots. A free slot goes to a user who has the fewest; among
// those, the users take turns, however many slots one of them waits for.
type Queue struct {
	each  int
	paced bool

	mu      sync.Mutex
	free    int
	held    map[string]int
	waiting []*waiter // in the order in which they came
	// The rest is start-time fair queueing: a waiter's round is one after that of
	// the same user's waiter before it, and at least that of the last grant.
	round uint64            // of the last grant
	last  map[string]uint64 // user → its last waiter's round, where that is after round
	// Of a paced queue: when users last asked, until when they are in debt, and
	// what looks for a waiter when the first has rested.
	asked map[string]time.Time
	debts map[string]time.Time
	alarm *time.Timer
}

// Times of a paced queue.
const (
	present = time.Second            // a user is one of several for as long after asking
	credit  = 100 * time.Millisecond // of debt, with which a user need not rest
	maxRest = 100 * time.Millisecond // after a slot
	// lightRest is how many times as long a heavy user rests while a light one is
	// present.
	lightRest = 5
)

type waiter struct {
	user  string
	round uint64
	ready chan struct{} // closed when it has a slot
}

// Slot is what Acquire gives, until Release or PassOn. It is for one goroutine.
type Slot struct {
	queue *Queue
	user  string
	begun time.Time
	given bool // back, or on
}

// New makes a queue of slots, of which a user can have each.
func New(slots, each int) *Queue {
	return &Queue{each: each, free: slots, held: map[string]int{}, last: map[string]uint64{}}
}

// NewPaced returns a queue for computations. A single user may use all slots.
// While several users compete, each has one slot at a time, and a heavy user, who
// used more than half of the time of late, pauses after each use for as long as it
// took, up to 100 ms. While one of the others is light, it pauses for five times
// as long, so that a light user mostly finds the processors idle. A light user does
// not pause: its turn took long because it had to wait for others. For up to 50 ms
// after its pause, a heavy user also waits until no light one has a slot.
func NewPaced(slots, each int) *Queue {
	q := New(slots, each)
	q.paced, q.asked, q.debts = true, map[string]time.Time{}, map[string]time.Time{}
	return q
}

// Acquire waits for a slot. The error is the cause of ctx's end, and then there
// is no slot.
func (q *Queue) Acquire(ctx context.Context, user string) (*Slot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w := q.enter(user)
	select {
	case <-w.ready:
	case <-ctx.Done():
		if q.leave(w) {
			return nil, context.Cause(ctx)
		}
	}
	return &Slot{queue: q, user: user, begun: time.Now()}, nil
}

func (q *Queue) enter(user string) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &waiter{user, max(q.round, q.last[user]) + 1, make(chan struct{})}
	q.last[user] = w.round
	q.waiting = append(q.waiting, w)
	if q.paced {
		q.asked[user] = time.Now()
	}
	q.grant()
	return w
}

// leave removes a waiter. It reports false for one that got its slot meanwhile.
func (q *Queue) leave(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := slices.Index(q.waiting, w)
	if n < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, n, n+1)
	delete(q.last, w.user)
	for _, other := range q.waiting { // what was given up counts as no turn
		if other.user == w.user {
			q.last[w.user] = other.round
		}
	}
	return true
}

// Waiting is how many wait for a slot.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Competing reports whether several users asked a paced queue of late.
func (q *Queue) Competing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.competing(time.Now())
}

// competing forgets the users who did not ask of late, and reports whether several
// are left; q.mu is held.
func (q *Queue) competing(now time.Time) bool {
	for user, at := range q.asked {
		if now.Sub(at) > present {
			delete(q.asked, user)
			delete(q.debts, user)
		}
	}
	return len(q.asked) > 1
}

// Release gives the slot back, unless it was given back or passed on before.
func (s *Slot) Release() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.given {
		return
	}
	s.given = true
	s.pause()
	s.queue.release(s.user)
}

// pause counts the use of a slot as debt, if another user is present; the
// queue's mu is held. A debt is twice the time of the uses, and wanes with time
// (the generic cell rate algorithm). Beside a light user, a debt above the credit
// grows by four times the time.
func (s *Slot) pause() {
	q := s.queue
	if !q.paced {
		return
	}
	if now := time.Now(); q.competing(now) {
		took, longest := now.Sub(s.begun), maxRest
		debt := max(q.debts[s.user].Sub(s.begun), 0) + 2*took
		if debt > took+credit && q.lightBeside(s.user, now) {
			debt += (lightRest - 1) * took
			longest *= lightRest
		}
		q.debts[s.user] = s.begun.Add(min(debt, took+credit+longest))
	}
}

// lightBeside reports whether another user than this is light.
func (q *Queue) lightBeside(user string, now time.Time) bool {
	for other := range q.asked {
		if other != user && q.light(other, now) {
			return true
		}
	}
	return false
}

// light reports whether a user is light. A heavy one that has a slot after its rest
// has most of the credit as debt.
func (q *Queue) light(user string, now time.Time) bool { return q.debts[user].Sub(now) < credit/2 }

// rests returns how long a user has yet to rest; zero or less is not at all. While a
// light user has a slot, the others rest until they are light, too.
func (q *Queue) rests(now time.Time) func(user string) time.Duration {
	var light []string // of those that have a slot, two
	for user, slots := range q.held {
		if q.paced && len(light) < 2 && slots > 0 && q.light(user, now) {
			light = append(light, user)
		}
	}
	return func(user string) time.Duration {
		spare := credit
		if slices.ContainsFunc(light, func(other string) bool { return other != user }) {
			spare = credit / 2
		}
		return max(q.debts[user].Sub(now), 0) - spare
	}
}

// limit is how many slots a user may have now.
func (q *Queue) limit() int {
	if q.paced && len(q.asked) > 1 {
		return 1
	}
	return q.each
}

// PassOn gives the slot to a waiter that may have it, or reports false where
// there is none: then the caller keeps it.
func (s *Slot) PassOn() bool {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := len(q.waiting)
	q.release(s.user)
	if len(q.waiting) < waiting {
		s.given = true
		return true
	}
	q.free--
	q.held[s.user]++
	return false
}

// Next is the user who would get the slot by PassOn; "" if no waiting user may
// have it.
func (s *Slot) Next() string {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held[s.user]--
	defer func() { q.held[s.user]++ }()
	if n := q.next(time.Now()); n >= 0 {
		return q.waiting[n].user
	}
	return ""
}

func (q *Queue) release(user string) {
	q.free++
	if q.held[user]--; q.held[user] == 0 {
		delete(q.held, user)
	}
	q.grant()
}

// grant gives free slots away; q.mu is held.
func (q *Queue) grant() {
	now := time.Now()
	for q.free > 0 {
		n := q.next(now)
		if n < 0 {
			q.lookLater(now)
			return
		}
		w := q.waiting[n]
		q.waiting = slices.Delete(q.waiting, n, n+1)
		q.free--
		q.held[w.user]++
		q.advance(w.round)
		close(w.ready)
	}
}

// next is the index of the waiter who gets the next slot, -1 if all users have
// their share.
func (q *Queue) next(now time.Time) int {
	best, limit, rest := -1, q.limit(), q.rests(now)
	for n, w := range q.waiting {
		if q.held[w.user] < limit && rest(w.user) <= 0 && (best < 0 || q.before(w, q.waiting[best])) {
			best = n
		}
	}
	return best
}

// lookLater grants again when the first waiter who rests now has rested.
func (q *Queue) lookLater(now time.Time) {
	var first time.Duration
	rest := q.rests(now)
	for _, w := range q.waiting {
		if wait := rest(w.user); wait > 0 && (first == 0 || wait < first) {
			first = wait
		}
	}
	if first == 0 {
		return
	}
	if q.alarm != nil {
		q.alarm.Stop()
	}
	q.alarm = time.AfterFunc(first, fault.Func("queue", func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.grant()
	}))
}

// before reports whether a, who came after b, gets a slot sooner.
func (q *Queue) before(a, b *waiter) bool {
	if q.held[a.user] != q.held[b.user] {
		return q.held[a.user] < q.held[b.user]
	}
	return a.round < b.round
}

// advance begins a round, and forgets the users who do not wait for a later one.
func (q *Queue) advance(round uint64) {
	if round <= q.round {
		return
	}
	q.round = round
	for user, last := range q.last {
		if last <= round {
			delete(q.last, user)
		}
	}
}
