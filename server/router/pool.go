package router

import (
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// pool is a route with its endpoints.
type pool struct {
	path      string
	appGUID   string
	service   *url.URL // requests go there first; nil for none
	least     bool     // choose by the fewest requests under way
	hashed    *hashed  // choose by a header; nil for none
	policy    *Policy  // who may come; nil: everybody
	direct    bool     // no route service, and endpoints that speak plain HTTP/1.1
	endpoints []*endpoint
	dozes     []*doze        // of the apps that it leads to
	next      *atomic.Uint32 // shared with the pool of the table before
	emptied   time.Time      // when the last endpoint left; zero if there never was one
}

// follow continues the pool of the same route in the table before; nil for none.
// The pool has no endpoints yet.
func (p *pool) follow(old *pool) {
	if old == nil {
		p.next = new(atomic.Uint32)
		return
	}
	p.next, p.emptied = old.next, old.emptied
	if len(old.endpoints) > 0 {
		p.emptied = time.Now()
	}
}

// gone reports whether the pool has been empty for the given time, after which
// gorouter deletes a pool. That of an app that sleeps is not gone.
func (p *pool) gone(after time.Duration) bool {
	return len(p.endpoints) == 0 && !p.sleeps() && (p.emptied.IsZero() || time.Since(p.emptied) >= after)
}

// matches reports whether path is the pool's or below it. As in Cloud Foundry
// case does not matter, and /x is no prefix of /xy.
func (p *pool) matches(path string) bool {
	n := len(p.path)
	if n == 0 {
		return true
	}
	return len(path) >= n && strings.EqualFold(path[:n], p.path) && (len(path) == n || path[n] == '/')
}

// choice narrows which endpoint a request may have.
type choice struct {
	sticky string     // InstanceGUID that is liked best; may be ""
	tried  []*backend // not again
	key    string     // value of the route's hash header
}

// pick chooses among endpoints, which are the pool's or some of them. It
// returns nil when all were tried. One marked down is chosen only when no
// other is left: being marked down is a guess.
func (p *pool) pick(endpoints []*endpoint, c choice) *endpoint {
	if c.sticky != "" {
		for _, e := range endpoints {
			if e.InstanceGUID == c.sticky && !slices.Contains(c.tried, e.backend) && !e.pruned(time.Now()) {
				return e
			}
		}
	}
	if len(endpoints) == 1 && len(c.tried) == 0 && endpoints[0].outUntil.Load() == 0 {
		return endpoints[0]
	}
	now := time.Now()
	if slices.ContainsFunc(endpoints, func(e *endpoint) bool { return e.pruned(now) }) {
		endpoints = slices.DeleteFunc(slices.Clone(endpoints), func(e *endpoint) bool { return e.pruned(now) })
	}
	usable := func(e *endpoint) bool { return !e.down(now) && !slices.Contains(c.tried, e.backend) }
	if p.hashed != nil && c.key != "" && len(endpoints) == len(p.endpoints) {
		if e := p.hashed.pick(c.key, usable); e != nil {
			return e
		}
	}
	if e := p.balance(endpoints, usable); e != nil {
		return e
	}
	return p.balance(endpoints, func(e *endpoint) bool { return !slices.Contains(c.tried, e.backend) })
}

func (p *pool) balance(endpoints []*endpoint, usable func(*endpoint) bool) *endpoint {
	n := len(endpoints)
	if n == 0 {
		return nil
	}
	start := int(p.next.Add(1) % uint32(n))
	var best *endpoint
	for i := range n {
		e := endpoints[(start+i)%n]
		switch {
		case !usable(e):
		case !p.least:
			return e
		case best == nil || e.requests.n.Load() < best.requests.n.Load():
			best = e
		}
	}
	return best
}
