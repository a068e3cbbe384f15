package logcache

import (
	"bytes"
	"cmp"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"cupola/server/logcache/archive"
	"cupola/server/logcache/history"
)

// Config bounds a Cache; zero values take the defaults. Log lines, gauges and
// timers are bounded apart, so that none pushes the others out.
type Config struct {
	MaxPerSource   int   // envelopes of each of the three; 10 000
	MaxBytes       int64 // of the log lines of all sources together; 64 MiB
	MaxMetricBytes int64 // of all gauges and counters, and of all timers; 16 MiB

	Dir     string       // keeps log lines too, in at most twice MaxBytes; "": they are in memory alone
	Metrics string       // the directory of the metrics' history; "": there is none
	Log     *slog.Logger // of Dir, Archive and Metrics

	Archive ArchiveConfig
}

// ArchiveConfig says which log lines are kept that Dir has no room for.
type ArchiveConfig struct {
	Dir      string // "": nothing
	MaxBytes int64  // of compressed lines
	MaxAge   time.Duration
}

const (
	defaultPerSource   = 10_000
	defaultBytes       = 64 << 20
	defaultMetricBytes = 16 << 20
)

// Cache holds envelopes. It may be used from several goroutines.
type Cache struct {
	began time.Time

	mu      sync.Mutex
	shelves [shelves]shelf

	disk    *disk            // nil: none
	archive *archive.Archive // nil: none
	busy    chan struct{}    // searches
	walks   walks

	// History has what PromQL reads of containers and requests; nil: there is none.
	History *history.Store
}

// New gives a cache with the log lines that Dir holds. Where Dir cannot be used
// they are in memory alone, and the log says so: log lines are not worth a daemon
// that does not start.
func New(c Config) *Cache {
	c.MaxPerSource = cmp.Or(max(c.MaxPerSource, 0), defaultPerSource)
	c.MaxBytes = cmp.Or(max(c.MaxBytes, 0), defaultBytes)
	c.MaxMetricBytes = cmp.Or(max(c.MaxMetricBytes, 0), defaultMetricBytes)
	made := &Cache{began: time.Now(), walks: walks{of: map[string]*walked{}}, busy: make(chan struct{}, maxSearches)}
	for i := range made.shelves {
		made.shelves[i] = shelf{maxPerSource: c.MaxPerSource, maxBytes: c.MaxMetricBytes, sources: map[string]*ring{}}
	}
	made.shelves[logShelf].maxBytes = c.MaxBytes
	if c.Dir != "" {
		made.openDisk(c)
	}
	if c.Metrics != "" {
		made.openHistory(c)
	}
	return made
}

func (c *Cache) openHistory(cfg Config) {
	h, err := history.Open(history.Config{Dir: cfg.Metrics, Log: cfg.Log})
	if err != nil {
		cfg.Log.Warn("metrics are kept in memory alone: a kill loses them", "err", err)
		return
	}
	c.History = h
}

func (c *Cache) openDisk(cfg Config) {
	// A line takes less room in a file than it counts for in memory, so that a
	// full segment holds a source's share.
	d, err := openDisk(cfg.Dir, cfg.Log, cfg.MaxPerSource, cfg.MaxBytes/sourceShare)
	if err != nil {
		cfg.Log.Warn("log lines are kept in memory alone: a kill loses them", "err", err)
		return
	}
	if a := cfg.Archive; a.Dir != "" {
		c.archive, err = archive.Open(archive.Config{Dir: a.Dir, MaxBytes: a.MaxBytes, MaxAge: a.MaxAge, Log: cfg.Log})
		if err != nil {
			cfg.Log.Warn("log lines are not kept for long", "err", err)
		}
		d.archive = c.archive
	}
	lines := &c.shelves[logShelf]
	err = d.load(func(all []Envelope) {
		for _, e := range all {
			_, evicted := lines.insert(e)
			for _, source := range evicted {
				d.evict(source)
			}
		}
		if len(all) > 0 {
			lines.pack(all[0].SourceID, lines.clock)
		}
	})
	if err != nil {
		cfg.Log.Warn("saved log lines were not read", "err", err)
	}
	c.disk = d
}

// Close closes what the directories needed to be open. What is appended later may be
// in memory alone.
func (c *Cache) Close() error {
	if c.disk != nil {
		c.disk.closeAll()
	}
	if c.History == nil {
		return nil
	}
	return c.History.Close()
}

// Append keeps a copy of e, which it returns. One whose timestamp is taken in its
// source is moved by nanoseconds, so that readers can page by time. An e without a
// source is dropped.
func (c *Cache) Append(e Envelope) Envelope {
	if e.SourceID == "" {
		return e
	}
	e.Payload = bytes.Clone(e.Payload)
	e, evicted := c.store(e)
	c.walks.appended(&e)
	if c.disk == nil || e.Kind != Log {
		return e
	}
	for _, source := range evicted {
		c.disk.evict(source)
	}
	c.disk.write(&e)
	return e
}

// store keeps e in memory.
func (c *Cache) store(e Envelope) (kept Envelope, evicted []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shelves[e.Kind.shelf()].insert(e)
}

// Delete forgets a source.
func (c *Cache) Delete(sourceID string) {
	c.deleteFromShelves(sourceID)
	if c.disk != nil {
		c.disk.remove(sourceID)
	}
	if c.archive != nil {
		c.archive.Delete(sourceID)
	}
	if c.History != nil {
		c.History.Delete(sourceID)
	}
}

func (c *Cache) deleteFromShelves(sourceID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.shelves {
		c.shelves[i].delete(sourceID)
	}
}

// Tagged is the value of a tag of each source's newest log line that has it, of the sources that wanted chooses.
func (c *Cache) Tagged(name string, wanted func(sourceID string) bool) map[string]string {
	all := map[string]string{}
	for _, id := range c.sourcesOf(logShelf) {
		if !wanted(id) {
			continue
		}
		c.Newest(id, func(e *Envelope) bool {
			if value := e.Tags[name]; value != "" {
				all[id] = value
			}
			return all[id] == ""
		})
	}
	return all
}

func (c *Cache) sourcesOf(shelf int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.shelves[shelf].sources))
}

// Pack keeps what was written before in less room, most of all of sources of which nothing was written since the last Pack. It is called now and then.
func (c *Cache) Pack() {
	for i := range c.shelves {
		c.packShelf(i, c.packs(i))
	}
	c.walks.forgetEnded(time.Now())
	if c.disk != nil {
		c.disk.forgetTags()
	}
}

// packs notes when a shelf is packed, and returns when it was so the last time, by the shelf's clock.
func (c *Cache) packs(shelf int) (since uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.shelves[shelf]
	since, s.packed = s.packed, s.clock
	return since
}

// packShelf packs sources one by one: others write meanwhile. Quiet are those of which nothing was written since then, by the shelf's clock.
func (c *Cache) packShelf(shelf int, since uint64) {
	for _, id := range c.sourcesOf(shelf) {
		c.packSource(shelf, id, since)
	}
}

func (c *Cache) packSource(shelf int, sourceID string, since uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shelves[shelf].pack(sourceID, since)
}

// SetArchiveLimits changes the bounds of the archive, if there is one.
func (c *Cache) SetArchiveLimits(maxBytes int64, maxAge time.Duration) {
	if c.archive != nil {
		c.archive.SetLimits(maxBytes, maxAge)
	}
}

// Sources are those that the cache, its archive or its history has anything of. Those that the history knows to be
// apps or service instances are true.
func (c *Cache) Sources() map[string]bool {
	all := map[string]bool{}
	if c.History != nil {
		all = c.History.Sources()
	}
	add := func(id string) {
		if _, ok := all[id]; !ok {
			all[id] = false
		}
	}
	if c.archive != nil {
		for _, id := range c.archive.Sources() {
			add(id)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.shelves {
		for id := range c.shelves[i].sources {
			add(id)
		}
	}
	return all
}

// Query says what to read.
type Query struct {
	SourceID   string
	Kinds      []Kind         // none: log lines
	Name       *regexp.Regexp // of a gauge, counter or timer; nil: whatever the name
	Start      time.Time      // inclusive
	End        time.Time      // exclusive; zero: open
	Limit      int            // 0: all
	Descending bool           // the newest first; Limit then cuts the oldest
}

// Newest calls each with the log lines of a source, the newest first, until it returns false.
func (c *Cache) Newest(sourceID string, each func(*Envelope) bool) {
	lines := c.view(logShelf, sourceID, time.Time{}, time.Time{})
	for e := range lines.backward() {
		if !each(e) {
			return
		}
	}
}

// view is what a shelf has of a source in [start, end).
func (c *Cache) view(shelf int, sourceID string, start, end time.Time) (v view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.shelves[shelf].sources[sourceID]; r != nil {
		v = r.between(start, end)
	}
	return v
}

// Read returns the envelopes asked for, ordered by time. They are not to be
// changed.
func (c *Cache) Read(q Query) []Envelope {
	found := c.find(q)
	if q.Limit > 0 && len(found) > q.Limit {
		if q.Descending {
			found = found[len(found)-q.Limit:]
		} else {
			found = found[:q.Limit]
		}
	}
	if q.Descending {
		slices.Reverse(found)
	}
	return found
}

// find is what q asks for, the oldest first. It copies what the limit leaves of each shelf; of several, more than the limit
// may be left.
func (c *Cache) find(q Query) (found []Envelope) {
	if len(q.Kinds) == 0 {
		q.Kinds = []Kind{Log}
	}
	wanted := func(e *Envelope) bool {
		return slices.Contains(q.Kinds, e.Kind) && (q.Name == nil || e.named(q.Name))
	}
	from := 0
	for _, v := range c.views(q) {
		some := cut(&v, q, wanted)
		if len(some) > 0 {
			from++
		}
		found = append(found, some...)
	}
	if from > 1 {
		slices.SortStableFunc(found, func(a, b Envelope) int { return a.Timestamp.Compare(b.Timestamp) })
	}
	return found
}

// views are what the shelves have that q asks of, as of one moment.
func (c *Cache) views(q Query) (all []view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.shelves {
		if r := c.shelves[i].sources[q.SourceID]; r != nil && slices.ContainsFunc(q.Kinds, func(k Kind) bool { return k.shelf() == i }) {
			all = append(all, r.between(q.Start, q.End))
		}
	}
	return all
}

// cut copies what is wanted of a view, the oldest first: at most q's limit of it, from the end that q begins at.
func cut(v *view, q Query, wanted func(*Envelope) bool) (found []Envelope) {
	for part := range v.parts(q.Descending) {
		for i := range part {
			if q.Descending {
				i = len(part) - 1 - i
			}
			if !wanted(&part[i]) {
				continue
			}
			if found = append(found, part[i]); len(found) == q.Limit {
				break
			}
		}
		if q.Limit > 0 && len(found) == q.Limit {
			break
		}
	}
	if q.Descending {
		slices.Reverse(found)
	}
	return found
}

// Meta is what the cache has of one source.
type Meta struct {
	Count, Expired int64
	Oldest, Newest time.Time
}

// Meta returns the metadata of every source.
func (c *Cache) Meta() map[string]Meta {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]Meta{}
	for i := range c.shelves {
		for id, r := range c.shelves[i].sources {
			all[id] = all[id].with(r)
		}
	}
	return all
}

// with is m and what r has; the zero Meta has nothing.
func (m Meta) with(r *ring) Meta {
	oldest, newest := r.span()
	if m.Count == 0 || oldest.Before(m.Oldest) {
		m.Oldest = oldest
	}
	if newest.After(m.Newest) {
		m.Newest = newest
	}
	m.Count, m.Expired = m.Count+int64(r.count), m.Expired+r.expired
	return m
}
