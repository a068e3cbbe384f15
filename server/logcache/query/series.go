package query

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"cupola/runtime/pattern"
	"cupola/server/logcache"
)

const (
	nameLabel   = "__name__"  // Prometheus's label of a metric's name
	sourceLabel = "source_id" // required in every selector
)

// envelopes are a cache as far as a query may see it.
type envelopes struct {
	cache   *logcache.Cache
	sources map[string]bool
}

// Querier gives what lies between two times in milliseconds, both included.
func (e envelopes) Querier(from, to int64) (storage.Querier, error) {
	return &querier{storage.NoopQuerier(), e, from, to}, nil
}

type querier struct {
	storage.Querier // names and values of labels, which are not available
	envelopes
	from, to int64
}

// Select gives series of what the cache has, and of its history.
func (q *querier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	c := collector{matchers: matchers, known: map[origin]*series{}}
	for id := range q.sources {
		for _, e := range q.cache.Read(logcache.Query{SourceID: id, Kinds: q.kinds(), Start: time.UnixMilli(q.from), End: time.UnixMilli(q.to + 1)}) {
			c.add(&e)
		}
	}
	all := c.found()
	if q.cache.History != nil {
		kept, err := q.lines(ctx, hints, matchers)
		if err != nil {
			return storage.ErrSeriesSet(err)
		}
		all = append(all, kept...)
	}
	slices.SortFunc(all, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &list{left: all}
}

// kinds are those of which envelopes are read: the history has the gauges.
func (q *querier) kinds() []logcache.Kind {
	if q.cache.History != nil {
		return []logcache.Kind{logcache.Counter, logcache.Timer}
	}
	return []logcache.Kind{logcache.Gauge, logcache.Counter, logcache.Timer}
}

// origin identifies the source of samples. Envelopes of one origin mostly
// share one map of tags.
type origin struct {
	tags                 uintptr
	source, instance, of string
}

type series struct {
	labels  labels.Labels
	matches bool
	samples chunks.SampleSlice
}

// collector gathers samples by their series.
type collector struct {
	matchers []*labels.Matcher
	known    map[origin]*series
	all      []*series // by labels, once
}

func (c *collector) add(e *logcache.Envelope) {
	for _, m := range e.Metrics {
		if s := c.series(e, m.Name); s.matches {
			s.add(e.Timestamp.UnixMilli(), m.Value)
		}
	}
}

// add moves a sample on to the next millisecond that is free: each has its own.
func (s *series) add(at int64, value float64) {
	if n := len(s.samples); n > 0 {
		at = max(at, s.samples[n-1].T()+1)
	}
	s.samples = append(s.samples, sample{at, value})
}

func (c *collector) series(e *logcache.Envelope, name string) *series {
	from := origin{reflect.ValueOf(e.Tags).Pointer(), e.SourceID, e.InstanceID, name}
	if s := c.known[from]; s != nil {
		return s
	}
	l := labelsOf(e.Tags, e.SourceID, e.InstanceID, name)
	at := slices.IndexFunc(c.all, func(s *series) bool { return labels.Equal(s.labels, l) })
	if at < 0 {
		at = len(c.all)
		c.all = append(c.all, &series{labels: l, matches: matches(c.matchers, l)})
	}
	c.known[from] = c.all[at]
	return c.all[at]
}

func (c *collector) found() (found []storage.Series) {
	for _, s := range c.all {
		if s.matches {
			found = append(found, storage.NewListSeries(s.labels, s.samples))
		}
	}
	return found
}

// Names that PromQL can write.
var (
	nameLetters  = pattern.Lazy(`[^a-zA-Z0-9_:]`)
	labelPattern = pattern.Lazy(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// labelsOf are the tags and the names of a metric. Other characters of its name
// are "_", and tags whose names have such are left out (log-cache).
func labelsOf(tags map[string]string, source, instance, name string) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	for k, v := range tags {
		if labelPattern().MatchString(k) {
			b.Set(k, v)
		}
	}
	b.Set(nameLabel, nameLetters().ReplaceAllString(name, "_"))
	b.Set(sourceLabel, source)
	b.Set("instance_id", instance)
	return b.Labels()
}

func matches(matchers []*labels.Matcher, l labels.Labels) bool {
	return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) })
}

// list is a storage.SeriesSet.
type list struct {
	left []storage.Series
	at   storage.Series
}

// Next goes on to the next series.
func (l *list) Next() bool {
	if len(l.left) == 0 {
		return false
	}
	l.at, l.left = l.left[0], l.left[1:]
	return true
}

// At is the series.
func (l *list) At() storage.Series { return l.at }

// Err is none: it is all in memory.
func (l *list) Err() error { return nil }

// Warnings are none.
func (l *list) Warnings() annotations.Annotations { return nil }

// sample is a chunks.Sample that is a number.
type sample struct {
	at    int64
	value float64
}

// T is the time in milliseconds.
func (s sample) T() int64 { return s.at }

// ST is when what is counted began: unknown.
func (s sample) ST() int64 { return 0 }

// F is the value.
func (s sample) F() float64 { return s.value }

// H is not a histogram.
func (s sample) H() *histogram.Histogram { return nil }

// FH is not a histogram either.
func (s sample) FH() *histogram.FloatHistogram { return nil }

// Type says that it is a number.
func (s sample) Type() chunkenc.ValueType { return chunkenc.ValFloat }

// Copy is the same.
func (s sample) Copy() chunks.Sample { return s }
