package logcache

import (
	"iter"
	"slices"
	"time"
)

// ring holds the newest envelopes of one source, ordered by time, no two of
// the same time: readers page by it. Most of them are packed in chunks. Those that are not are the oldest, once they
// are dropped one by one, and the newest, among which another one may have its place.
type ring struct {
	source string

	oldest []Envelope
	chunks []chunk
	newest []Envelope

	count   int
	bytes   int64 // as Envelope.bytes counts
	loose   int64 // of them those of newest
	expired int64 // dropped so far
	touched uint64
}

const (
	// chunkBytes is how much goes into a chunk, as Envelope.bytes counts: about 80 lines, or 25 measurements of a container.
	chunkBytes = 16 << 10
	// maxLoose is how much may be loose of a source that writes on: the older half is packed then, for lines come a little out of order.
	maxLoose = 2 * chunkBytes
	// fewLoose is how many envelopes stay loose of a source that writes on.
	fewLoose = 8
)

// insert puts e in its place, a nanosecond later where that is taken. It
// returns e as it is kept.
func (r *ring) insert(e Envelope) Envelope {
	r.loosen(e.Timestamp)
	live := r.newest
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
	r.newest = slices.Insert(live, at, e)
	r.count++
	r.bytes += e.bytes()
	r.loose += e.bytes()
	if last := at == len(live); last && r.loose > maxLoose { // where lines come in another order than their times', packing would be in vain
		r.packOlder()
	}
	return e
}

// loosen unpacks what is not older than a time, so that all of it is in newest.
func (r *ring) loosen(at time.Time) {
	from := len(r.chunks)
	for from > 0 && !r.chunks[from-1].newestTime().Before(at) {
		from--
	}
	var all []Envelope
	if n := len(r.oldest); from == 0 && n > 0 && !r.oldest[n-1].Timestamp.Before(at) {
		all, r.oldest = r.oldest, nil
	}
	for i := range r.chunks[from:] {
		all = append(all, r.chunks[from+i].unpack(r.source)...)
	}
	if len(all) == 0 {
		return
	}
	r.chunks = slices.Delete(r.chunks, from, len(r.chunks))
	for i := range all {
		r.loose += all[i].bytes()
	}
	r.newest = append(all, r.newest...)
}

// packOlder packs the older half of what is loose.
func (r *ring) packOlder() {
	n, sum := 0, int64(0)
	for n < len(r.newest)-1 && sum < r.loose-chunkBytes {
		sum += r.newest[n].bytes()
		n++
	}
	r.packFirst(n)
}

// packFirst packs the first envelopes of newest, together with the last chunk if that is small.
func (r *ring) packFirst(n int) {
	some := r.newest[:n]
	if n == 0 || !fit(some) {
		return
	}
	for i := range some {
		r.loose -= some[i].bytes()
	}
	if last := len(r.chunks) - 1; last >= 0 && r.chunks[last].bytes < chunkBytes/2 {
		some = append(r.chunks[last].unpack(r.source), some...)
		r.chunks = r.chunks[:last]
	}
	for part := range split(some, chunkBytes) {
		r.chunks = append(r.chunks, pack(part))
	}
	r.newest = slices.Delete(r.newest, 0, n)
	if len(r.newest) == 0 {
		r.newest = nil
	}
}

// pack packs what is loose; of a source that writes on only if that is worth it.
func (r *ring) pack(quiet bool) {
	if quiet || len(r.newest) >= fewLoose {
		r.packFirst(len(r.newest))
	}
	if quiet && len(r.oldest) > 0 && fit(r.oldest) {
		r.chunks, r.oldest = slices.Insert(r.chunks, 0, pack(r.oldest)), nil
	}
	if quiet && len(r.chunks) < cap(r.chunks) {
		r.chunks = append(make([]chunk, 0, len(r.chunks)), r.chunks...)
	}
}

// evict drops the oldest envelope and returns its size.
func (r *ring) evict() int64 {
	switch {
	case len(r.oldest) > 0:
	case len(r.chunks) > 0:
		r.oldest = r.chunks[0].unpack(r.source)
		r.chunks = slices.Delete(r.chunks, 0, 1)
	default:
		r.oldest, r.newest, r.loose = r.newest, nil, 0
	}
	size := r.oldest[0].bytes()
	r.oldest[0] = Envelope{}
	r.oldest = r.oldest[1:]
	r.count--
	r.bytes -= size
	r.expired++
	return size
}

// span is the times of the oldest and the newest envelope.
func (r *ring) span() (from, to time.Time) {
	switch {
	case len(r.oldest) > 0:
		from = r.oldest[0].Timestamp
	case len(r.chunks) > 0:
		from = r.chunks[0].oldestTime()
	default:
		from = r.newest[0].Timestamp
	}
	switch {
	case len(r.newest) > 0:
		to = r.newest[len(r.newest)-1].Timestamp
	case len(r.chunks) > 0:
		to = r.chunks[len(r.chunks)-1].newestTime()
	default:
		to = r.oldest[len(r.oldest)-1].Timestamp
	}
	return from, to
}

// view is what a ring has in [start, end). The ring may change meanwhile.
type view struct {
	source     string
	start, end time.Time
	oldest     []Envelope
	chunks     []chunk
	newest     []Envelope
}

// between is what lies in [start, end); a zero end is open.
func (r *ring) between(start, end time.Time) view {
	v := view{source: r.source, start: start, end: end, oldest: slices.Clone(between(r.oldest, start, end)), newest: slices.Clone(between(r.newest, start, end))}
	for i := range r.chunks {
		if c := &r.chunks[i]; !c.newestTime().Before(start) && (end.IsZero() || c.oldestTime().Before(end)) {
			v.chunks = append(v.chunks, *c)
		}
	}
	return v
}

// all is all that the ring has.
func (r *ring) all() view { return r.between(time.Time{}, time.Time{}) }

func between(all []Envelope, start, end time.Time) []Envelope {
	byTime := func(e Envelope, t time.Time) int { return e.Timestamp.Compare(t) }
	from, _ := slices.BinarySearchFunc(all, start, byTime)
	to := len(all)
	if !end.IsZero() {
		to, _ = slices.BinarySearchFunc(all, end, byTime)
	}
	return all[from:max(from, to)]
}

// parts are the envelopes of a view, each part ordered by time: the oldest part first, or the newest one.
func (v *view) parts(backward bool) iter.Seq[[]Envelope] {
	first, last := v.oldest, v.newest
	if backward {
		first, last = last, first
	}
	return func(yield func([]Envelope) bool) {
		if !yield(first) {
			return
		}
		for i := range v.chunks {
			if backward {
				i = len(v.chunks) - 1 - i
			}
			if !yield(between(v.chunks[i].unpack(v.source), v.start, v.end)) {
				return
			}
		}
		yield(last)
	}
}

// backward are the envelopes of a view, the newest first.
func (v *view) backward() iter.Seq[*Envelope] {
	return func(yield func(*Envelope) bool) {
		for part := range v.parts(true) {
			for i := range slices.Backward(part) {
				if !yield(&part[i]) {
					return
				}
			}
		}
	}
}
