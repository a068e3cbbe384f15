package logcache

import (
	"bytes"
	"slices"
	"sync"
	"time"
)

// Config bounds a Cache; zero values take the defaults.
type Config struct {
	MaxPerSource int   // envelopes; 10 000
	MaxBytes     int64 // of all sources together; 64 MiB
}

const (
	defaultPerSource = 10_000
	defaultBytes     = 64 << 20
	// No source gets more than this part of all bytes, so that one that talks
	// much does not push all others out.
	sourceShare = 8
)

// Cache holds envelopes. It may be used from several goroutines.
type Cache struct {
	maxPerSource int
	maxBytes     int64
	began        time.Time

	mu          sync.Mutex
	sources     map[string]*ring
	bytes       int64
	clock       uint64 // counts appends: which source was written last
	subscribers map[string]map[*subscriber]struct{}
}

// New gives an empty cache.
func New(c Config) *Cache {
	if c.MaxPerSource <= 0 {
		c.MaxPerSource = defaultPerSource
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = defaultBytes
	}
	return &Cache{
		maxPerSource: c.MaxPerSource, maxBytes: c.MaxBytes, began: time.Now(),
		sources: map[string]*ring{}, subscribers: map[string]map[*subscriber]struct{}{},
	}
}

// Append keeps a copy of e and hands it to who follows its source. One whose
// timestamp is taken in its source is moved by nanoseconds, so that readers
// can page by time. An e without a source is dropped.
func (c *Cache) Append(e Envelope) {
	if e.SourceID == "" {
		return
	}
	e.Payload = bytes.Clone(e.Payload)
	c.mu.Lock()
	defer c.mu.Unlock()
	e = c.insertLocked(e)
	for s := range c.subscribers[e.SourceID] {
		s.send(e)
	}
}

func (c *Cache) insertLocked(e Envelope) Envelope {
	r := c.sources[e.SourceID]
	if r == nil {
		r = &ring{}
		c.sources[e.SourceID] = r
	}
	c.clock++
	r.touched = c.clock
	e = r.insert(e)
	c.bytes += e.bytes()
	for n := len(r.live()); n > c.maxPerSource || n > 1 && r.bytes > c.maxBytes/sourceShare; n-- {
		c.bytes -= r.evict()
	}
	for c.bytes > c.maxBytes && len(c.sources) > 1 {
		c.evictSourceLocked()
	}
	return e
}

// evictSourceLocked drops the source that was written to the longest ago.
func (c *Cache) evictSourceLocked() {
	var oldest string
	for id, r := range c.sources {
		if oldest == "" || r.touched < c.sources[oldest].touched {
			oldest = id
		}
	}
	c.bytes -= c.sources[oldest].bytes
	delete(c.sources, oldest)
}

// Delete forgets a source.
func (c *Cache) Delete(sourceID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.sources[sourceID]; r != nil {
		c.bytes -= r.bytes
		delete(c.sources, sourceID)
	}
}

// Query says what to read.
type Query struct {
	SourceID   string
	Start      time.Time // inclusive
	End        time.Time // exclusive; zero: open
	Limit      int       // 0: all
	Descending bool      // the newest first; Limit then cuts the oldest
}

// Read returns the envelopes asked for, ordered by time. They are not to be
// changed.
func (c *Cache) Read(q Query) []Envelope {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.sources[q.SourceID]
	if r == nil {
		return nil
	}
	found := r.between(q.Start, q.End)
	if q.Limit > 0 && len(found) > q.Limit {
		if q.Descending {
			found = found[len(found)-q.Limit:]
		} else {
			found = found[:q.Limit]
		}
	}
	found = slices.Clone(found)
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

// Meta tells of every source.
func (c *Cache) Meta() map[string]Meta {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]Meta, len(c.sources))
	for id, r := range c.sources {
		live := r.live()
		all[id] = Meta{Count: int64(len(live)), Expired: r.expired, Oldest: live[0].Timestamp, Newest: live[len(live)-1].Timestamp}
	}
	return all
}
