package autoscaling

import (
	"sync"
	"time"
)

// Requests are how many requests an app got, and how long they took together.
type Requests struct {
	Count int64
	Took  time.Duration
}

// traffic counts the requests of apps that have a policy, and of no others.
type traffic struct {
	mu  sync.RWMutex
	all map[string]*counter // by the GUIDs of apps
}

type counter struct {
	mu sync.Mutex
	Requests
	since time.Time
}

// add counts a request that is over. It is on the path of every request.
func (t *traffic) add(app string, took time.Duration) {
	t.mu.RLock()
	c := t.all[app]
	t.mu.RUnlock()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Count++
	c.Took += took
}

// keep counts for these apps from now on.
func (t *traffic) keep(apps []string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.all
	t.all = map[string]*counter{}
	for _, app := range apps {
		if t.all[app] = was[app]; t.all[app] == nil {
			t.all[app] = &counter{since: now}
		}
	}
}

// take is what an app got since the last take, and for how long that was.
func (t *traffic) take(app string, now time.Time) (r Requests, during time.Duration) {
	t.mu.RLock()
	c := t.all[app]
	t.mu.RUnlock()
	if c == nil {
		return r, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, during = c.Requests, now.Sub(c.since)
	c.Requests, c.since = Requests{}, now
	return r, during
}
