package logcache

import (
	"slices"
	"time"
)

// ring holds the newest envelopes of one source, ordered by time, no two of
// the same time: readers page by it.
type ring struct {
	envelopes []Envelope // from head on
	head      int
	bytes     int64
	expired   int64 // dropped so far
	touched   uint64
}

func (r *ring) live() []Envelope { return r.envelopes[r.head:] }

// insert puts e in its place, a nanosecond later where that is taken. It
// returns e as it is kept.
func (r *ring) insert(e Envelope) Envelope {
	live := r.live()
	at := len(live)
	for at > 0 && live[at-1].Timestamp.After(e.Timestamp) {
		at--
	}
	if at > 0 && live[at-1].Timestamp.Equal(e.Timestamp) {
		e.Timestamp = e.Timestamp.Add(1)
	}
	for at < len(live) && live[at].Timestamp.Equal(e.Timestamp) {
		e.Timestamp = e.Timestamp.Add(1)
		at++
	}
	r.envelopes = slices.Insert(r.envelopes, r.head+at, e)
	r.bytes += e.bytes()
	return e
}

// evict drops the oldest envelope and returns its size.
func (r *ring) evict() int64 {
	size := r.envelopes[r.head].bytes()
	r.envelopes[r.head] = Envelope{}
	r.head++
	r.bytes -= size
	r.expired++
	if r.head > len(r.envelopes)/2 {
		r.envelopes = slices.Delete(r.envelopes, 0, r.head)
		r.head = 0
		if len(r.envelopes) < cap(r.envelopes)/4 {
			r.envelopes = slices.Clip(slices.Clone(r.envelopes))
		}
	}
	return size
}

// between is what lies in [start, end); a zero end is open.
func (r *ring) between(start, end time.Time) []Envelope {
	live := r.live()
	byTime := func(e Envelope, t time.Time) int { return e.Timestamp.Compare(t) }
	from, _ := slices.BinarySearchFunc(live, start, byTime)
	to := len(live)
	if !end.IsZero() {
		to, _ = slices.BinarySearchFunc(live, end, byTime)
	}
	return live[from:max(from, to)]
}
