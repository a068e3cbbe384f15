package logcache

import (
	"context"
	"fmt"
	"time"

	"cupola/runtime/fault"
)

// subscriberBuffer is how many envelopes a reader may lag behind.
const subscriberBuffer = 512

// subscriber is one reader of a live stream.
type subscriber struct {
	ch      chan Envelope
	dropped int
}

// Subscribe streams new envelopes of a source until ctx ends, then closes the
// channel. A reader that lags loses envelopes; an envelope of source type LGR
// then reports how many.
func (c *Cache) Subscribe(ctx context.Context, sourceID string) <-chan Envelope {
	s := &subscriber{ch: make(chan Envelope, subscriberBuffer)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subscribers[sourceID] == nil {
		c.subscribers[sourceID] = map[*subscriber]struct{}{}
	}
	c.subscribers[sourceID][s] = struct{}{}
	context.AfterFunc(ctx, fault.Func("logcache", func() { c.unsubscribe(sourceID, s) }))
	return s.ch
}

func (c *Cache) unsubscribe(sourceID string, s *subscriber) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.subscribers[sourceID], s)
	if len(c.subscribers[sourceID]) == 0 {
		delete(c.subscribers, sourceID)
	}
	close(s.ch)
}

// send never waits.
func (s *subscriber) send(e Envelope) {
	room := cap(s.ch) - len(s.ch)
	if room == 0 || s.dropped > 0 && room < 2 {
		s.dropped++
		return
	}
	if s.dropped > 0 {
		s.ch <- dropNotice(e.SourceID, s.dropped)
		s.dropped = 0
	}
	s.ch <- e
}

func dropNotice(sourceID string, dropped int) Envelope {
	return Envelope{
		Timestamp: time.Now(), SourceID: sourceID, InstanceID: "0", Err: true,
		Tags:    map[string]string{"source_type": "LGR"},
		Payload: fmt.Appendf(nil, "Log message output is too high. %d messages were dropped", dropped),
	}
}
