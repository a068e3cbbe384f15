package history

import (
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"os"
	"slices"

	"cupola/server/logcache/record"
)

// A journal is a file of a level's samples in the order they came. A number is given
// to a track and to a series before its first sample, and holds until a reset.
const (
	resetRecord   = 'r' // numbers are given again from here on
	trackRecord   = 't' // number, origin
	seriesRecord  = 's' // number, that of its track, kind, name
	samplesRecord = 'v' // seconds, then for each sample how much its series' number is more than the one before, and what differs from the value before
	deleteRecord  = 'd' // a source; also its tracks' numbers are gone
)

// journal is a journal that is written.
type journal struct {
	file *os.File
	end  int64 // of its window
	size int64 // bytes that are whole
	sync bool  // something is not synced
}

// appendOrigin appends an origin, with the tags in the order of their names.
func appendOrigin(b []byte, o *Origin) []byte {
	b = record.AppendText(record.AppendText(b, o.Source), o.Instance)
	b = binary.AppendUvarint(b, uint64(len(o.Tags)))
	for _, name := range slices.Sorted(maps.Keys(o.Tags)) {
		b = record.AppendText(record.AppendText(b, name), o.Tags[name])
	}
	return b
}

// cutOrigin splits an origin from b.
func cutOrigin(b []byte) (o Origin, rest []byte, err error) {
	source, b, err := record.CutText(b)
	if err != nil {
		return o, nil, err
	}
	instance, b, err := record.CutText(b)
	if err != nil {
		return o, nil, err
	}
	n, b, err := record.CutNumber(b)
	if err != nil || n > uint64(len(b)) || len(source) == 0 {
		return o, nil, record.ErrInvalid
	}
	o = Origin{Source: string(source), Instance: string(instance), Tags: make(map[string]string, n)}
	for range n {
		var name, value []byte
		if name, b, err = record.CutText(b); err == nil {
			value, b, err = record.CutText(b)
		}
		if err != nil {
			return o, nil, err
		}
		o.Tags[string(name)] = string(value)
	}
	return o, b, nil
}

// skipOrigin is what follows an origin.
func skipOrigin(b []byte) (rest []byte, err error) {
	for range 2 {
		if _, b, err = record.CutText(b); err != nil {
			return nil, err
		}
	}
	n, b, err := record.CutNumber(b)
	if err != nil || n > uint64(len(b)) {
		return nil, record.ErrInvalid
	}
	for range 2 * n {
		if _, b, err = record.CutText(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// note writes samples of a track to what is pending for the journal.
func (s *Store) note(l *level, t *track, at int64, values []value) {
	if len(values) == 0 {
		return
	}
	if len(l.pending) > maxPending { // what follows would refer to numbers that are not there
		s.renumber(l)
		return
	}
	if l.numbers == 0 {
		l.pending = record.Append(l.pending, resetRecord, func(b []byte) []byte { return b })
	}
	for _, v := range values {
		l.declare(t, v.series)
	}
	l.pending = record.Append(l.pending, samplesRecord, func(b []byte) []byte {
		b = binary.AppendVarint(b, at)
		last := uint64(0)
		for _, v := range values {
			h, now := v.series.heads[l.number], math.Float64bits(v.value)
			b = binary.AppendUvarint(binary.AppendUvarint(b, h.number-last), bits.ReverseBytes64(h.written^now))
			h.written, last = now, h.number
		}
		return b
	})
}

// declare gives a series its number.
func (l *level) declare(t *track, m *series) {
	h := m.heads[l.number]
	if h.number != 0 {
		return
	}
	if t.numbers[l.number] == 0 {
		l.numbers++
		t.numbers[l.number] = l.numbers
		l.pending = record.Append(l.pending, trackRecord, func(b []byte) []byte {
			return appendOrigin(binary.AppendUvarint(b, l.numbers), &t.Origin)
		})
	}
	l.numbers++
	h.number, h.written = l.numbers, 0
	l.pending = record.Append(l.pending, seriesRecord, func(b []byte) []byte {
		b = binary.AppendUvarint(binary.AppendUvarint(b, h.number), t.numbers[l.number])
		return record.AppendText(append(b, byte(m.kind)), m.name)
	})
}

// renumber drops what is pending; numbers are given again.
func (s *Store) renumber(l *level) {
	l.pending, l.numbers = nil, 0
	for _, t := range s.tracks {
		t.numbers[l.number] = 0
		for _, m := range t.series {
			if h := m.heads[l.number]; h != nil {
				h.number = 0
			}
		}
	}
}

func (l *level) noteDeleted(source string) {
	if l.end > 0 {
		l.pending = record.Append(l.pending, deleteRecord, func(b []byte) []byte { return record.AppendText(b, source) })
	}
}

// replay is how a journal is read.
type replay struct {
	store   *Store
	level   *level
	tracks  map[uint64]*track
	series  map[uint64]*series
	written map[uint64]uint64 // bits of the last value
}

// read adds the samples of a journal to the heads, and returns how many bytes are
// whole.
func (r *replay) read(b []byte) (whole int) {
	r.reset()
	for {
		kind, body, rest, err := record.Cut(b[whole:])
		if err != nil || r.apply(kind, body) != nil {
			return whole
		}
		whole = len(b) - len(rest)
	}
}

func (r *replay) reset() {
	r.tracks, r.series, r.written = map[uint64]*track{}, map[uint64]*series{}, map[uint64]uint64{}
}

func (r *replay) apply(kind byte, body []byte) error {
	switch kind {
	case resetRecord:
		r.reset()
		return nil
	case trackRecord:
		return r.track(body)
	case seriesRecord:
		return r.declare(body)
	case samplesRecord:
		return r.samples(body)
	case deleteRecord:
		source, _, err := record.CutText(body)
		r.store.drop(string(source))
		return err
	}
	return record.ErrInvalid
}

func (r *replay) track(b []byte) error {
	number, b, err := record.CutNumber(b)
	if err != nil {
		return err
	}
	o, _, err := cutOrigin(b)
	if err != nil {
		return err
	}
	r.tracks[number] = r.store.track(o)
	return nil
}

func (r *replay) declare(b []byte) error {
	number, b, err := record.CutNumber(b)
	if err != nil {
		return err
	}
	of, b, err := record.CutNumber(b)
	if err != nil || len(b) == 0 || r.tracks[of] == nil || Kind(b[0]) >= kinds || Kind(b[0]).finest() > r.level.number {
		return record.ErrInvalid
	}
	name, _, err := record.CutText(b[1:])
	if err != nil {
		return err
	}
	r.series[number] = r.store.seriesOf(r.tracks[of], string(name), Kind(b[0])) // nil: there are too many
	r.written[number] = 0
	return nil
}

func (r *replay) samples(b []byte) error {
	at, n := binary.Varint(b)
	if n <= 0 {
		return record.ErrInvalid
	}
	number := uint64(0)
	for b = b[n:]; len(b) > 0; {
		var more, differs uint64
		var err error
		if more, b, err = record.CutNumber(b); err == nil {
			differs, b, err = record.CutNumber(b)
		}
		number += more
		before, ok := r.written[number]
		if err != nil || !ok {
			return record.ErrInvalid
		}
		now := before ^ bits.ReverseBytes64(differs)
		r.written[number] = now
		if m := r.series[number]; m != nil && at > r.level.end-r.level.window && at <= r.level.end && at > m.heads[r.level.number].last {
			if err := m.heads[r.level.number].add(at, math.Float64frombits(now)); err != nil {
				return err
			}
		}
	}
	return nil
}
