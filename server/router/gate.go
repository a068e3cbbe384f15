package router

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"cupola/server/bulkhead"
)

// Gate bounds the connections of clients and the requests under way. The API
// and the apps share listeners, so that a connection is a stranger until the
// head of its first request says for whom it is; from then on it counts for the
// API or for the apps. Where their budget is used up the connection that is idle
// for the longest is closed, and where all are busy the newcomer is refused. A
// flood to apps thus leaves the API's connections alone, and the other way
// round.
type Gate struct {
	limits    bulkhead.Limits
	strangers *bulkhead.Strangers

	apps       *bulkhead.Share[string]       // requests and TCP connections, by app
	appClients *bulkhead.Share[netip.Prefix] // the same, by address
	apiClients *bulkhead.Share[netip.Prefix] // requests of the API, by address
	backends   atomic.Int64                  // connections to instances
	refused    [reasons]atomic.Int64

	mu    sync.Mutex
	crowd [classes]crowd
}

// class is what a connection is used for.
type class int

const (
	forAPI class = iota
	forApps
	classes
)

// crowd are the connections of a class.
type crowd struct {
	limit, n int
	idle     *list.List // of *client, the one that is idle for the longest first
}

// addressFactor lets one address have three quarters of what there is: users
// behind a load balancer or a NAT share theirs.
const addressFactor = 3

// NewGate makes a gate with budgets.
func NewGate(l bulkhead.Limits) *Gate {
	g := &Gate{limits: l, strangers: bulkhead.NewStrangers(l.Strangers),
		apps: bulkhead.NewShare[string](l.Backends, 1), appClients: bulkhead.NewShare[netip.Prefix](l.Backends, addressFactor),
		apiClients: bulkhead.NewShare[netip.Prefix](l.API, addressFactor)}
	g.crowd[forAPI] = crowd{limit: l.API, idle: list.New()}
	g.crowd[forApps] = crowd{limit: l.Apps, idle: list.New()}
	return g
}

// reason is why a client was refused or cut off.
type reason int

const (
	fullStrangers reason = iota // pushed out before it asked
	fullIdle                    // closed while idle, for another
	fullConnections
	fullApp
	fullAddress
	slowBody
	slowReader
	reasons
)

var reasonNames = [reasons]string{"no_request", "idle", "connections", "app", "address", "slow_body", "slow_reader"}

// Use is what is used of a budget.
type Use struct {
	Name        string
	Used, Limit int
}

// Stats is what a Gate has let in and refused.
type Stats struct {
	Uses    []Use
	Refused map[string]int64 // by reason
}

// Stats returns the current numbers.
func (g *Gate) Stats() Stats {
	g.mu.Lock()
	api, apps := g.crowd[forAPI].n, g.crowd[forApps].n
	g.mu.Unlock()
	s := Stats{Refused: map[string]int64{}, Uses: []Use{
		{"new", g.strangers.Len(), g.limits.Strangers}, {"api", api, g.limits.API}, {"apps", apps, g.limits.Apps},
		{"backends", int(g.backends.Load()), g.limits.Backends},
		{"api_requests", g.apiClients.Used(), g.limits.API}, {"app_requests", g.apps.Used(), g.limits.Backends},
	}}
	for r, name := range reasonNames {
		s.Refused[name] = g.refused[r].Load()
	}
	return s
}

func (g *Gate) count(r reason) { g.refused[r].Add(1) }

// admit lets a client's connection in, as a stranger.
func (g *Gate) admit(conn net.Conn) *client {
	c := newClient(conn, g)
	g.estrange(c)
	return c
}

func (g *Gate) estrange(c *client) {
	one, pushed := g.strangers.Add(c.address, c.close)
	if pushed {
		g.count(fullStrangers)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.gone {
		g.strangers.Remove(one)
		return
	}
	c.stranger = one
}

// enter counts a request, or the life of a connection that is no HTTP, for a
// class; false when there is no room. leave ends it.
func (g *Gate) enter(c *client, k class) bool {
	victim, ok, ended := g.tryEnter(c, k)
	switch {
	case ended:
	case !ok:
		g.estrange(c)
		g.count(fullConnections)
	case victim != nil:
		victim.close()
		g.count(fullIdle)
	}
	return ok
}

// tryEnter counts a request of a connection, unless the budget is exhausted or
// the connection has ended. The caller must close a returned victim.
func (g *Gate) tryEnter(c *client, k class) (victim *client, ok, ended bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.gone || c.stranger != nil && !g.strangers.Remove(c.stranger) {
		return nil, false, true
	}
	c.stranger = nil
	ok = true
	if c.busy == 0 {
		victim, ok = g.moveLocked(c, k)
	}
	if ok {
		c.busy++
	}
	return victim, ok, false
}

// moveLocked counts an idle connection for a class. The caller must close a
// returned victim.
func (g *Gate) moveLocked(c *client, k class) (victim *client, ok bool) {
	g.forgetLocked(c)
	to := &g.crowd[k]
	if to.n >= to.limit {
		oldest := to.idle.Front()
		if oldest == nil {
			return nil, false
		}
		victim, _ = oldest.Value.(*client)
		g.forgetLocked(victim)
		victim.gone = true
	}
	to.n++
	c.crowd = to
	return victim, true
}

// forgetLocked takes an idle connection out of its class.
func (g *Gate) forgetLocked(c *client) {
	if c.crowd == nil {
		return
	}
	if c.idle != nil {
		c.crowd.idle.Remove(c.idle)
		c.idle = nil
	}
	c.crowd.n--
	c.crowd = nil
}

func (g *Gate) leave(c *client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.busy--; c.busy == 0 && c.crowd != nil {
		c.idle = c.crowd.idle.PushBack(c)
	}
}

// forget is called when a connection is closed.
func (g *Gate) forget(c *client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.gone = true
	if c.stranger != nil {
		g.strangers.Remove(c.stranger)
		c.stranger = nil
	}
	g.forgetLocked(c)
}

// acquireApp takes a slot for a request or TCP connection to an app. putApp gives
// it back.
func (g *Gate) acquireApp(app string, address netip.Prefix) (r reason, ok bool) {
	if !g.apps.Take(app) {
		return fullApp, false
	}
	if !g.appClients.Take(address) {
		g.apps.Put(app)
		return fullAddress, false
	}
	return 0, true
}

func (g *Gate) releaseApp(app string, address netip.Prefix) {
	g.apps.Put(app)
	g.appClients.Put(address)
}

// EnterAPI counts a request to the API until done is called. It returns false
// if the budget is exhausted; the caller must then close the connection.
func (g *Gate) EnterAPI(req *http.Request) (done func(), ok bool) {
	c := clientOf(req.Context())
	if c != nil && !g.enter(c, forAPI) {
		return nil, false
	}
	address := bulkhead.AddressOf(req.RemoteAddr)
	ok = g.apiClients.Take(address)
	if !ok {
		g.count(fullAddress)
	}
	leave := func() {
		if ok {
			g.apiClients.Put(address)
		}
		if c != nil {
			g.leave(c)
		}
	}
	if !ok {
		leave()
		return nil, false
	}
	return leave, true
}

type clientKey struct{}

// clientOf is the connection that a request came on; nil where the server is
// not one of NewServer behind a Guard.
func clientOf(ctx context.Context) *client {
	c, _ := ctx.Value(clientKey{}).(*client)
	return c
}
