package history

import (
	"encoding/binary"
	"math"

	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"cupola/server/logcache/record"
)

// quietTrack is a track of which nothing was measured for a while, in a tenth of the room. It is woken by the next sample.
//
// Its data are, of each series, the kind and the name, and of each level that has the kind the time of the newest sample, the samples,
// and the slice: the number of its samples and, unless that is 0, its other fields.
type quietTrack struct {
	data   []byte
	series int
	levels [levels]bool // that have samples of it in memory
	due    int64        // when the first of its slices ends; 0 without a slice
}

const (
	// quietAfter is how many seconds pass after a sample until its track is quiet.
	quietAfter = 60
	// quietEvery is how many seconds pass between two looks for such tracks.
	quietEvery = 60
)

// packQuiet packs the tracks that are quiet.
func (s *Store) packQuiet(now int64) {
	for key, t := range s.tracks {
		if t.newest() < now-quietAfter {
			s.rest(key, t)
		}
	}
}

// newest is when something was measured of the track.
func (t *track) newest() (at int64) {
	for _, m := range t.series {
		for _, h := range m.heads {
			if h != nil {
				at = max(at, h.last, h.slice.at)
			}
		}
	}
	return at
}

// rest packs a track; one of which nothing is in memory is forgotten.
func (s *Store) rest(key string, t *track) {
	delete(s.tracks, key)
	s.forgetIdle(t)
	if len(t.series) == 0 {
		return
	}
	q := quietTrack{series: len(t.series)}
	for _, m := range t.series {
		q.data = record.AppendText(append(q.data, byte(m.kind)), m.name)
		for k := m.kind.finest(); k < levels; k++ {
			q.add(k, m.heads[k])
		}
	}
	q.data = append(make([]byte, 0, len(q.data)), q.data...)
	s.quiet[key] = q
}

// add adds what a level has of a series.
func (q *quietTrack) add(k int, h *head) {
	q.data = binary.AppendVarint(q.data, h.last)
	var samples []byte
	if h.chunk != nil {
		samples, q.levels[k] = h.chunk.Bytes(), true
	}
	q.data = record.AppendText(q.data, samples)
	c := &h.slice
	if q.data = binary.AppendUvarint(q.data, uint64(c.count)); c.count == 0 { //nolint:gosec // not negative
		return
	}
	q.data = binary.AppendVarint(binary.AppendVarint(q.data, c.end), c.at)
	for _, v := range []float64{c.sum, c.peak, c.last} {
		q.data = binary.LittleEndian.AppendUint64(q.data, math.Float64bits(v))
	}
	if q.due == 0 || c.end < q.due {
		q.due = c.end
	}
}

// wake makes a quiet track one that is written.
func (s *Store) wake(key string, q quietTrack) *track {
	o, _, err := cutOrigin([]byte(key))
	if err != nil {
		panic(err) // key was made of an origin
	}
	t := &track{Origin: o}
	q.each(func(m quietSeries) {
		awake := &series{track: t, name: string(m.name), kind: m.kind}
		for k := m.kind.finest(); k < levels; k++ {
			awake.heads[k] = m.heads[k].wake()
		}
		t.series = append(t.series, awake)
	})
	delete(s.quiet, key)
	s.tracks[key] = t
	return t
}

// wakeAll wakes all tracks that are quiet.
func (s *Store) wakeAll() {
	for key, q := range s.quiet {
		s.wake(key, q)
	}
}

// closeQuiet is closeSlices for the tracks that are quiet.
func (s *Store) closeQuiet(k int, by int64) {
	if k == 0 {
		return // it has no slices
	}
	for key, q := range s.quiet {
		if q.due > 0 && q.due <= by {
			t := s.wake(key, q)
			s.closeSlices(k, t, by)
			s.rest(key, t)
		}
	}
}

// freezeQuiet adds what the window has of quiet tracks.
func (s *Store) freezeQuiet(l *level, f *frozen) {
	for key, q := range s.quiet {
		if q.levels[l.number] {
			t := s.wake(key, q)
			f.add(l, t)
			s.rest(key, t)
		}
	}
}

// quietSeries is a series of a quiet track. Its name and samples are parts of the track's data.
type quietSeries struct {
	name  []byte
	kind  Kind
	heads [levels]quietHead
}

type quietHead struct {
	last    int64
	samples []byte
	slice   slice
}

// each calls f with the series of a track.
func (q *quietTrack) each(f func(quietSeries)) {
	for b := q.data; len(b) > 0; {
		m := quietSeries{kind: Kind(b[0])}
		m.name, b = cutQuietText(b[1:])
		for k := m.kind.finest(); k < levels; k++ {
			b = m.heads[k].cut(b)
		}
		f(m)
	}
}

// sourceOf is the source of an origin by its key.
func sourceOf(key string) string {
	length, n := binary.Uvarint([]byte(key[:min(len(key), binary.MaxVarintLen64)]))
	return key[n : n+int(length)] //nolint:gosec // a length
}

// cut reads a head from data that add wrote, and returns what follows.
func (h *quietHead) cut(b []byte) []byte {
	h.last, b = cutQuietNumber(b)
	h.samples, b = cutQuietText(b)
	count, n := binary.Uvarint(b)
	if b = b[n:]; count == 0 {
		return b
	}
	h.slice.count = int(count) //nolint:gosec // it was an int
	h.slice.end, b = cutQuietNumber(b)
	h.slice.at, b = cutQuietNumber(b)
	for _, v := range []*float64{&h.slice.sum, &h.slice.peak, &h.slice.last} {
		*v, b = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
	}
	return b
}

func cutQuietNumber(b []byte) (int64, []byte) {
	v, n := binary.Varint(b)
	return v, b[n:]
}

func cutQuietText(b []byte) (text, rest []byte) {
	length, n := binary.Uvarint(b)
	b = b[n:]
	return b[:length:length], b[length:]
}

// wake makes a head that samples can be added to.
func (h *quietHead) wake() *head {
	awake := &head{}
	if len(h.samples) > 0 {
		chunk, err := chunkenc.FromData(chunkenc.EncXOR, h.samples)
		if err != nil {
			panic(err) // it was such a chunk
		}
		for it := chunk.Iterator(nil); it.Next() != chunkenc.ValNone; {
			at, v := it.At()
			if err := awake.add(at, v); err != nil {
				panic(err) // it was added before
			}
		}
	}
	awake.last, awake.slice = h.last, h.slice
	return awake
}
