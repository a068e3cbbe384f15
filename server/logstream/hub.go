package logstream

import (
	"hash/crc64"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"cupola/server/logcache"
)

// Hub passes envelopes on to the subscriptions that want them. It may be used from
// several goroutines. The zero value is ready.
type Hub struct {
	n       atomic.Int32 // subscriptions
	dropped atomic.Int64 // envelopes that a queue had no room for

	mu     sync.RWMutex
	alone  []*subscription            // each gets all that it wants
	shards map[string][]*subscription // one of a shard gets an envelope; ordered by name
}

// Wanted reports whether anybody listens, so that making envelopes is worth it.
func (h *Hub) Wanted() bool { return h.n.Load() > 0 }

// Listening is the number of streams.
func (h *Hub) Listening() int { return int(h.n.Load()) }

// Dropped counts the envelopes that streams lost because their readers were slow.
func (h *Hub) Dropped() int64 { return h.dropped.Load() }

// Publish gives an envelope to those who want it. It does not wait. The envelope's
// parts are not to be changed after.
func (h *Hub) Publish(e logcache.Envelope) {
	if !h.Wanted() {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, s := range h.alone {
		if s.want.match(&e) {
			h.give(s, e)
		}
	}
	for _, shard := range h.shards {
		if s := choose(shard, &e); s != nil {
			h.give(s, e)
		}
	}
}

func (h *Hub) give(s *subscription, e logcache.Envelope) {
	if !s.put(e) {
		h.dropped.Add(1)
	}
}

// choose is the member of a shard that gets an envelope: any of those that want it,
// or where they have names always the same for the same metric (go-pubsub).
func choose(shard []*subscription, e *logcache.Envelope) *subscription {
	var able []*subscription
	named := false
	for _, s := range shard {
		if s.want.match(e) {
			able, named = append(able, s), named || s.name != ""
		}
	}
	switch {
	case len(able) == 0:
		return nil
	case named:
		return able[hash(e)%uint64(len(able))]
	}
	return able[rand.IntN(len(able))] //nolint:gosec // nothing depends on it
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// hash is doppler's (loggregator-release: src/router/internal/server/v2/pubsub.go):
// by the names of metrics, and random for all else.
func hash(e *logcache.Envelope) (sum uint64) {
	if e.Kind != logcache.Counter && e.Kind != logcache.Gauge {
		return rand.Uint64() //nolint:gosec // nothing depends on it
	}
	for _, m := range e.Metrics {
		sum += crc64.Checksum([]byte(m.Name), crcTable)
	}
	return sum
}

// subscribe begins to collect what is wanted, alone or as a member of a shard. The
// caller ends it with unsubscribe.
func (h *Hub) subscribe(want selection, shard, name string) *subscription {
	s := &subscription{want: want, shard: shard, name: name, signal: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n.Add(1)
	if shard == "" {
		h.alone = append(h.alone, s)
		return s
	}
	if h.shards == nil {
		h.shards = map[string][]*subscription{}
	}
	all := append(h.shards[shard], s)
	slices.SortStableFunc(all, func(a, b *subscription) int { return strings.Compare(a.name, b.name) })
	h.shards[shard] = all
	return s
}

func (h *Hub) unsubscribe(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n.Add(-1)
	is := func(other *subscription) bool { return other == s }
	if s.shard == "" {
		h.alone = slices.DeleteFunc(h.alone, is)
		return
	}
	if h.shards[s.shard] = slices.DeleteFunc(h.shards[s.shard], is); len(h.shards[s.shard]) == 0 {
		delete(h.shards, s.shard)
	}
}
