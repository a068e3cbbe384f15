package health

import (
	"sync"
	"time"
)

// A container that waits for a processor cannot answer. A deadline is that of Diego as long as the container runs when it wants to,
// and so much longer as it waited meanwhile, up to patience times as long.
const patience = 10

// clock counts for a deadline only the time in which the container did not wait for a processor, nor the daemon itself.
type clock struct {
	starved func() time.Duration // as Spec's; nil: it never waits
	length  time.Duration        // of the deadline

	mu    sync.Mutex
	end   time.Time     // of all patience; zero: it has not begun to look
	asked time.Time     // when starved was asked last
	seen  time.Duration // what it said
	given time.Duration // until the next time it is asked
}

// begin begins to look at the container, at the latest when given remains of the deadline.
func (c *clock) begin(given time.Duration) {
	if c.starved == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.end, c.asked, c.seen, c.given = now.Add(given+(patience-1)*c.length), now, c.starved(), given
}

// more is how much longer the deadline is, for what the container has waited since more was called last; 0 if that is little.
func (c *clock) more() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end.IsZero() {
		return 0
	}
	now, seen := time.Now(), c.starved()
	passed := now.Sub(c.asked)
	lost := max(min(seen-c.seen, passed), passed-c.given) // threads may have waited at the same time; who comes late was not let run
	if lost < c.length/20 {
		return 0
	}
	c.asked, c.seen, c.given = now, seen, max(min(lost, c.end.Sub(now)), 0)
	return c.given
}
