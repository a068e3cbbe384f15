package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Query says what to read.
type Query struct {
	Sources  map[string]bool
	From, To int64         // seconds, both included
	Step     time.Duration // between the times that are asked for; 0: one time
	Range    time.Duration // of what is looked at for each; 0: the newest sample
	Maxima   bool          // of Range: maxima of Peaks
	Coarse   bool          // a coarser level gives the same for a Range that is long enough
	Wanted   func(o *Origin, name string) bool
	Names    bool // which series there are, without their samples
	MaxBytes int  // of compressed samples
}

// Series is what there is of a series, in the order of time.
type Series struct {
	*Origin
	Name   string
	Steady bool // holds between samples, and does not grow to the next one
	Pieces []Piece
}

// Piece is samples from one level: of Chunk those after After and up to Until.
type Piece struct {
	Chunk        chunkenc.Chunk // times are seconds
	After, Until int64
	Step         int64
}

// ErrTooMuch says that a query needs more samples than it may take.
var ErrTooMuch = errors.New("query needs too many samples: ask for fewer metrics or apps, or less time")

// span is the part of the time that is read from a level.
type span struct{ after, until int64 }

// longRange is how many steps of a level a range has to have to be read from it
// though a finer one has it.
const longRange = 10

// spans chooses the levels: of each time the finest one that has it, or a coarser one
// that is fine enough for what is asked. Those of kinds that are not in the first
// level begin at first.
func (s *Store) spans(q Query, now int64, first int) (all [levels]span) {
	until := int64(math.MaxInt64)
	for k := first; k < levels; k++ {
		l := &s.levels[k]
		after := l.begins()
		if k+1 < levels && s.levels[k+1].suffices(q) {
			step := s.levels[k+1].step
			after = max(after, (now-2*grace-step)/step*step) // the newest slices are not there yet
		}
		if k == levels-1 {
			after = math.MinInt64
		}
		all[k] = span{min(after, until), until}
		until = all[k].after
	}
	return all
}

// suffices reports whether the level is fine enough where a finer one has it, too.
func (l *level) suffices(q Query) bool {
	step := time.Duration(l.step) * time.Second
	if l.end == 0 {
		return false
	}
	if q.Range == 0 {
		return q.Step >= step
	}
	return q.Coarse && q.Range >= longRange*step
}

// selection gathers the series of a query.
type selection struct {
	Query
	spans [2][levels]span // of kinds whose finest level is the index
	known map[string]*Series
	bytes int
}

// Select returns the series of a query, in no order.
func (s *Store) Select(ctx context.Context, q Query) ([]*Series, error) {
	sel := selection{Query: q, known: map[string]*Series{}}
	blocks := s.snapshot(&sel)
	var buffer []byte
	for k := range blocks {
		for _, b := range blocks[k] {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			var err error
			if buffer, err = sel.read(&b, &resolutions[k], k, buffer); err != nil {
				return nil, err
			}
		}
	}
	var all []*Series
	for _, m := range sel.known {
		if m != nil && len(m.Pieces) > 0 {
			slices.SortStableFunc(m.Pieces, func(a, b Piece) int { return int(max(-1, min(1, a.Until-b.Until))) })
			all = append(all, m)
		}
	}
	if sel.bytes > q.MaxBytes {
		return nil, ErrTooMuch
	}
	return all, nil
}

// snapshot adds what is in memory, and returns the blocks to read.
func (s *Store) snapshot(sel *selection) (blocks [levels][]block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now().Unix()
	for first := range sel.spans {
		sel.spans[first] = s.spans(sel.Query, now, first)
	}
	for k := range s.levels {
		l := &s.levels[k]
		for _, b := range l.blocks {
			if sel.needs(k, b.end-l.window, b.end) {
				blocks[k] = append(blocks[k], b)
			}
		}
		for _, f := range l.frozen {
			if !sel.needs(k, f.end-l.window, f.end) {
				continue
			}
			for _, c := range f.chunks {
				sel.add(&c.series.track.Origin, nil, found{c.series.kind, []byte(c.series.name), c.samples}, k, f.end)
			}
		}
		if sel.needs(k, l.end-l.window, l.end) {
			s.heads(sel, k)
		}
	}
	return blocks
}

// heads adds a level's window in memory.
func (s *Store) heads(sel *selection, k int) {
	for _, t := range s.tracks {
		if !sel.Sources[t.Source] {
			continue
		}
		for _, m := range t.series {
			if h := m.heads[k]; h != nil && h.chunk != nil {
				sel.add(&t.Origin, nil, found{m.kind, []byte(m.name), h.chunk.Bytes()}, k, s.levels[k].end)
			}
		}
	}
	for key, q := range s.quiet {
		if !q.levels[k] || !sel.Sources[sourceOf(key)] {
			continue
		}
		q.each(func(m quietSeries) {
			if samples := m.heads[k].samples; len(samples) > 0 {
				sel.add(nil, []byte(key), found{m.kind, m.name, samples}, k, s.levels[k].end)
			}
		})
	}
}

// needs reports whether any kind is read from a level's window.
func (sel *selection) needs(k int, after, until int64) bool {
	for first, spans := range sel.spans {
		if s := spans[k]; k >= first && max(s.after, after, sel.From-1) < min(s.until, until, sel.To) {
			return true
		}
	}
	return false
}

// read adds what a block has.
func (sel *selection) read(b *block, r *resolution, k int, buffer []byte) ([]byte, error) {
	f, err := os.Open(b.path)
	if errors.Is(err, os.ErrNotExist) {
		return buffer, nil // pruned meanwhile
	}
	if err != nil {
		return buffer, err
	}
	defer f.Close()
	index, err := readIndex(f, b.size)
	if err != nil {
		return buffer, fmt.Errorf("read metrics of %s: %w", time.Duration(r.step)*time.Second, err)
	}
	for _, e := range index {
		if !sel.Sources[e.source] {
			continue
		}
		if buffer, err = e.area(f, buffer); err != nil {
			return buffer, err
		}
		parseArea(buffer, func(origin []byte, all []found) {
			for _, c := range all {
				sel.add(nil, origin, c, k, b.end)
			}
		})
		if sel.bytes > sel.MaxBytes {
			return buffer, ErrTooMuch
		}
	}
	return buffer, nil
}

// add adds a chunk, which it copies, if it is wanted. The origin is given as such or
// as blocks have it.
func (sel *selection) add(o *Origin, encoded []byte, f found, k int, end int64) {
	m := sel.series(o, encoded, f)
	if m == nil {
		return
	}
	r, s := resolutions[k], sel.spans[min(f.kind.base().finest(), 1)][k]
	p := Piece{After: max(s.after, end-r.window), Until: min(s.until, end), Step: r.step}
	if p.After >= p.Until || p.After >= sel.To || p.Until < sel.From || sel.bytes > sel.MaxBytes {
		return
	}
	if (f.kind == maximum) != (sel.Maxima && k == maximum.finest() && (f.kind == maximum || f.kind == Peak)) {
		return
	}
	if sel.Names {
		m.Pieces = append(m.Pieces[:0], p)
		return
	}
	chunk, err := chunkenc.FromData(chunkenc.EncXOR, bytes.Clone(f.samples))
	if err != nil {
		return
	}
	sel.bytes += len(f.samples)
	p.Chunk = chunk
	m.Pieces = append(m.Pieces, p)
}

// base is the kind of the series that a maximum belongs to.
func (k Kind) base() Kind {
	if k == maximum {
		return Peak
	}
	return k
}

// series is the series of a chunk; nil if it is not wanted.
func (sel *selection) series(o *Origin, encoded []byte, f found) *Series {
	if encoded == nil {
		encoded = o.key(nil)
	}
	key := string(encoded) + "\x00" + string(f.name)
	m, ok := sel.known[key]
	if ok {
		return m
	}
	if o == nil {
		parsed, _, err := cutOrigin(encoded)
		if err != nil {
			return nil
		}
		o = &parsed
	}
	if sel.Sources[o.Source] && sel.Wanted(o, string(f.name)) {
		kind := f.kind.base()
		m = &Series{Origin: o, Name: string(f.name), Steady: kind == Mean || kind == Peak}
	}
	sel.known[key] = m
	return m
}
