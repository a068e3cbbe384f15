package router

import (
	"cmp"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// downTime is how long an endpoint that could not be reached is passed over
// while others can be (gorouter).
const downTime = 30 * time.Second

// endpoint is an Endpoint as one table has it, with what outlives tables.
type endpoint struct {
	Endpoint
	index string // Index as text
	// Values of X-Cf-*, shared by all requests and so never changed.
	appIDValue, instanceIDValue, indexValue []string
	*backend
}

func newEndpoint(e Endpoint, b *backend) *endpoint {
	index := strconv.Itoa(e.Index)
	return &endpoint{
		Endpoint: e, index: index, backend: b,
		appIDValue: []string{e.AppGUID}, instanceIDValue: []string{cmp.Or(e.InstanceGUID, e.Address)}, indexValue: []string{index},
	}
}

// backendKey reports whether two endpoints of different tables are the same.
type backendKey struct {
	address, tlsAddress, instance, protocol string
}

func (e Endpoint) key() backendKey {
	return backendKey{e.Address, e.TLSAddress, e.InstanceGUID, e.Protocol}
}

// backend is what the router knows of an endpoint as long as it is in use:
// connections, requests under way, failures.
type backend struct {
	transport *http.Transport
	links     *links // for requests that are forwarded directly
	address   string // that the transport connects to
	requests  *inflight
	downUntil atomic.Int64 // Unix nanoseconds
	outUntil  atomic.Int64 // Unix nanoseconds
	removed   atomic.Bool  // in no table any more
}

func (b *backend) down(now time.Time) bool {
	until := b.downUntil.Load()
	return until != 0 && now.UnixNano() < until
}

func (b *backend) markDown(now time.Time) { b.downUntil.Store(now.Add(downTime).UnixNano()) }

// pruned reports whether the endpoint showed another's certificate a short while ago. It
// gets no request, also when no other is left.
func (b *backend) pruned(now time.Time) bool {
	until := b.outUntil.Load()
	return until != 0 && now.UnixNano() < until
}

func (b *backend) prune(now time.Time) { b.outUntil.Store(now.Add(downTime).UnixNano()) }

func (b *backend) markUp() {
	if b.downUntil.Load() != 0 {
		b.downUntil.Store(0)
	}
}

// closeIdle closes the connections that no request uses.
func (b *backend) closeIdle() {
	b.transport.CloseIdleConnections()
	b.links.closeIdle()
}

func (b *backend) acquire() { b.requests.enter() }

// release ends a request. The last one of a removed endpoint closes its
// connections: the address may soon belong to another app.
func (b *backend) release() {
	if b.requests.leave() && b.removed.Load() {
		b.closeIdle()
	}
}

func (b *backend) retire() {
	b.removed.Store(true)
	if b.requests.n.Load() == 0 {
		b.closeIdle()
	}
}
