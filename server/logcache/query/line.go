package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"cupola/server/logcache/history"
)

// maxChunkBytes bounds the compressed samples of a selector.
const maxChunkBytes = 32 << 20

// coarseFuncs are functions that a coarser resolution answers as well, over a range
// with many samples.
var coarseFuncs = []string{"rate", "increase", "avg_over_time", maxFunc}

// maxFunc reads the maxima where a resolution has them besides the means.
const maxFunc = "max_over_time"

// lines are the series of the history that match.
func (q *querier) lines(ctx context.Context, hints *storage.SelectHints, matchers []*labels.Matcher) (all []storage.Series, err error) {
	asked := history.Query{Sources: q.sources, From: q.from / 1000, To: q.to / 1000, MaxBytes: maxChunkBytes}
	if hints != nil {
		asked.From, asked.To = hints.Start/1000, hints.End/1000
		asked.Step, asked.Range = time.Duration(hints.Step)*time.Millisecond, time.Duration(hints.Range)*time.Millisecond
		asked.Maxima, asked.Coarse = hints.Func == maxFunc, slices.Contains(coarseFuncs, hints.Func)
	}
	asked.Wanted = func(o *history.Origin, name string) bool {
		return matches(matchers, labelsOf(o.Tags, o.Source, o.Instance, name))
	}
	found, err := q.cache.History.Select(ctx, asked)
	if err != nil {
		return nil, err
	}
	merged := map[string]*line{}
	for _, s := range found {
		l := labelsOf(s.Tags, s.Source, s.Instance, s.Name)
		key := string(l.Bytes(nil))
		if merged[key] == nil {
			merged[key] = &line{labels: l, steady: s.Steady, window: int64(asked.Range / time.Second)}
		}
		merged[key].pieces = append(merged[key].pieces, s.Pieces...)
	}
	for _, l := range merged {
		slices.SortStableFunc(l.pieces, func(a, b history.Piece) int { return cmp.Compare(a.Until, b.Until) })
		all = append(all, l)
	}
	return all, nil
}

// line is a series of the history. Where samples are too far apart for the range that
// is looked at, there are more between them: a mean holds for the time it is of, and
// what grows does so evenly.
type line struct {
	labels labels.Labels
	pieces []history.Piece
	steady bool
	window int64 // seconds; 0: the newest sample is asked for
}

// Labels identify the series.
func (l *line) Labels() labels.Labels { return l.labels }

// Iterator reads the samples.
func (l *line) Iterator(chunkenc.Iterator) chunkenc.Iterator { return &points{line: l, left: l.pieces} }

// spacing is the interval between samples of a resolution, in seconds; 0: as they
// are.
func (l *line) spacing(step int64) int64 {
	if l.window == 0 || l.window >= 3*step {
		return 0
	}
	return max(l.window/4, step/20, 1)
}

// point is a sample.
type point struct {
	at    int64 // seconds
	value float64
}

// points iterates over a line.
type points struct {
	*line
	left    []history.Piece
	piece   history.Piece
	samples chunkenc.Iterator // of piece; nil: none
	begun   bool
	before  point // the last sample that is not in between
	at      point // where the iterator is
	next    point // the sample that those in between lead to
	gap     int64 // between them; 0: next is at
	err     error
}

// Next goes to the next sample.
func (p *points) Next() chunkenc.ValueType {
	if p.gap > 0 {
		p.between()
		return chunkenc.ValFloat
	}
	before, had := p.next, p.begun
	for {
		if !p.read() {
			return chunkenc.ValNone
		}
		if at := p.next.at; at <= p.piece.Until && at > p.piece.After && (!p.begun || at > before.at) {
			break
		}
		if p.next.at <= p.piece.After { // leads to the next one
			before, had = p.next, true
		}
	}
	p.begun, p.at = true, p.next
	if spacing := p.spacing(p.piece.Step); had && spacing > 0 && before.at < p.next.at && p.next.at-before.at <= 2*p.piece.Step {
		p.before, p.at, p.gap = before, before, spacing
		p.between()
	}
	return chunkenc.ValFloat
}

// read reads the next sample of the pieces.
func (p *points) read() bool {
	for p.err == nil {
		if p.samples != nil && p.samples.Next() == chunkenc.ValFloat {
			p.next.at, p.next.value = p.samples.At()
			return true
		}
		if p.samples != nil {
			p.err = p.samples.Err()
		}
		if len(p.left) == 0 {
			return false
		}
		p.piece, p.left = p.left[0], p.left[1:]
		p.samples = p.piece.Chunk.Iterator(nil)
	}
	return false
}

// between goes to the next sample on the way from before to next.
func (p *points) between() {
	if p.at.at += p.gap; p.at.at >= p.next.at {
		p.at, p.gap = p.next, 0
		return
	}
	from := p.before.value
	if p.next.value < from { // it began again
		from = 0
	}
	if p.steady {
		from = p.next.value
	}
	p.at.value = from + (p.next.value-from)*float64(p.at.at-p.before.at)/float64(p.next.at-p.before.at)
}

// milliseconds since 1970. Without the name, go vet takes Seek for an io.Seeker's.
type milliseconds = int64

// Seek goes to the first sample at a time or later.
func (p *points) Seek(t milliseconds) chunkenc.ValueType {
	for !p.begun || p.at.at*1000 < t {
		if p.Next() == chunkenc.ValNone {
			return chunkenc.ValNone
		}
	}
	return chunkenc.ValFloat
}

// At is the sample; its time is in milliseconds.
func (p *points) At() (int64, float64) { return p.at.at * 1000, p.at.value }

// AtHistogram is none.
func (p *points) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) { return 0, nil }

// AtFloatHistogram is none either.
func (p *points) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return 0, nil
}

// AtT is the time in milliseconds.
func (p *points) AtT() int64 { return p.at.at * 1000 }

// AtST is when what is counted began: unknown.
func (p *points) AtST() int64 { return 0 }

// Err says that a chunk is damaged.
func (p *points) Err() error { return p.err }
