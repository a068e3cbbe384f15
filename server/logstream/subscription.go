package logstream

import (
	"sync"

	"cupola/server/logcache"
)

// The bounds of a queue: Loggregator's count, and cupola's of bytes, for lines are
// up to 60 KiB long.
const (
	queueSize  = 1000
	queueBytes = 2 << 20
)

// batchSize is how many envelopes are sent at once at most: Loggregator's.
const batchSize = 100

// envelopeCost is about what an envelope takes besides its text.
const envelopeCost = 200

// subscription is a queue of envelopes for one stream.
type subscription struct {
	want   selection
	shard  string
	name   string        // deterministic_name
	signal chan struct{} // something was put

	mu    sync.Mutex
	queue []logcache.Envelope
	bytes int
}

// put queues an envelope, and reports whether there was room.
func (s *subscription) put(e logcache.Envelope) bool {
	cost := len(e.Payload) + envelopeCost
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= queueSize || s.bytes+cost > queueBytes {
		return false
	}
	s.queue, s.bytes = append(s.queue, e), s.bytes+cost
	select {
	case s.signal <- struct{}{}:
	default:
	}
	return true
}

// take gives the oldest envelopes, at most a batch. When more are left there is a
// signal.
func (s *subscription) take() []logcache.Envelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queue), batchSize)
	batch := s.queue[:n:n]
	s.queue = s.queue[n:]
	for _, e := range batch {
		s.bytes -= len(e.Payload) + envelopeCost
	}
	if len(s.queue) == 0 {
		s.queue = nil
	} else {
		select {
		case s.signal <- struct{}{}:
		default:
		}
	}
	return batch
}
