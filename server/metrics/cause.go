package metrics

import (
	"sync"
	"time"
)

// The number of apps whose causes are kept, and how long a request counts as the cause of what begins.
const (
	maxCauses = 1024
	causeTime = 5 * time.Minute
)

// causes are the requests that changed apps last.
type causes struct {
	mu    sync.Mutex
	byApp map[string]*cause
}

type cause struct {
	trace string // "": it is not sampled
	until time.Time
	begun map[string]bool // what has begun since that begins once for a request: containers that begin again did so for another reason
}

// set notes that a request changed an app. Where there is no room, another app's is forgotten.
func (c *causes) set(app, trace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.byApp == nil {
		c.byApp = map[string]*cause{}
	}
	if c.byApp[app] == nil && len(c.byApp) >= maxCauses {
		c.makeRoom(now)
	}
	c.byApp[app] = &cause{trace: trace, until: now.Add(causeTime), begun: map[string]bool{}}
}

// makeRoom forgets causes that are over, or else any.
func (c *causes) makeRoom(now time.Time) {
	for app, one := range c.byApp {
		if now.After(one.until) {
			delete(c.byApp, app)
		}
	}
	for app := range c.byApp {
		if len(c.byApp) < maxCauses {
			return
		}
		delete(c.byApp, app)
	}
}

// of is the trace of the request for which something of an app begins; "" for one that is not sampled. !known: no request is known to
// be the cause.
func (c *causes) of(app, what string) (trace string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.byApp[app]
	if one == nil || time.Now().After(one.until) || one.begun[what] {
		return "", false
	}
	one.begun[what] = true
	return one.trace, true
}
