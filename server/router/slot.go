package router

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"cupola/server/bulkhead"
)

// enter counts the connection for the apps; false after it was refused.
func (x *exchange) enter() bool {
	c := clientOf(x.Context)
	if c == nil {
		return true
	}
	if !x.router.config.Gate.enter(c, forApps) {
		x.refuseFull()
		return false
	}
	x.client = c
	return true
}

// takeSlot takes one of the app's slots, for as long as the request is under
// way; false after it was refused.
func (x *exchange) takeSlot() bool {
	g, app := x.router.config.Gate, cmp.Or(x.appGUID(), x.host)
	reason, ok := g.acquireApp(app, x.address())
	if !ok {
		g.count(reason)
		x.refuseFull()
		return false
	}
	x.slotOf, x.slotted = app, true
	return true
}

// address is whom the request is counted for.
func (x *exchange) address() netip.Prefix {
	if x.client != nil {
		return x.client.address
	}
	return bulkhead.AddressOf(x.request.RemoteAddr)
}

// leave gives back what enter and takeSlot took.
func (x *exchange) leave() {
	if x.slotted {
		x.slotted = false
		x.router.config.Gate.releaseApp(x.slotOf, x.address())
	}
	for _, d := range x.dozes {
		d.leave()
	}
	x.dozes = nil
	if x.client != nil {
		x.router.config.Gate.leave(x.client)
	}
}

// refuseFull answers in gorouter's words for a route whose endpoints have all
// the connections that they may have. The client's connection is closed.
func (x *exchange) refuseFull() {
	if x.request.ProtoMajor == 1 {
		x.Header().Set("Connection", "close")
	}
	x.refuse(http.StatusServiceUnavailable, "Connection Limit Reached", fmt.Sprintf("Requested route ('%s') has reached the connection limit.", x.request.Host))
}

// enterPort counts a connection of a TCP route, until done is called; false when
// there is no room for it.
func (r *Router) enterPort(number int, conn net.Conn) (done func(), ok bool) {
	g, app := r.config.Gate, fmt.Sprintf("port %d", number)
	if p := r.index.Load().ports[number]; p != nil && p.appGUID != "" {
		app = p.appGUID
	}
	c := newClient(conn, g)
	if !g.enter(c, forApps) {
		g.forget(c)
		return nil, false
	}
	reason, ok := g.acquireApp(app, c.address)
	if !ok {
		g.count(reason)
		g.forget(c)
		return nil, false
	}
	return func() {
		g.releaseApp(app, c.address)
		g.forget(c)
	}, true
}
