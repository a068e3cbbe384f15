package router

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"cupola/runtime/fault"
)

// Direct says which requests of a listener are forwarded directly.
type Direct struct {
	Shard *Shard // whose apps the listener serves; nil is all
	// Reserved reports whether a Host is not an app's; nil: each is.
	Reserved func(host string) bool
	// Handler answers the requests of HTTP/2 that are not forwarded directly. With nil, net/http's
	// server gets all connections that speak it.
	Handler http.Handler
}

// Ahead serves the plain requests for apps that come on a listener from Guard: it
// forwards them byte for byte, without net/http. Its Accept gives the connections of HTTP/1 on
// which something else comes, from the request on with which it does: large
// bodies, requests of reserved hosts, those of routes with a route service, and what may be
// read in two ways. The router answers these, too, as their http.Handler: both ways
// have the same rules. Of a connection of HTTP/2 it gives such requests alone to d.Handler.
//
// Close takes no more connections and ends idle ones. Accept fails once all that had
// connected before have said what they want; to close it again drops them.
func (r *Router) Ahead(l net.Listener, d Direct) net.Listener {
	a := &aheadListener{Listener: l, Direct: d, router: r, ready: make(chan net.Conn), over: make(chan struct{}), conns: map[*directConn]bool{}, multi: map[*multiConn]bool{}}
	if d.Handler != nil {
		a.Handler = progressing(generalOptions(d.Handler), r.config.Timeouts.Progress)
		a.server = &http.Server{Handler: a.Handler, ReadHeaderTimeout: r.config.Timeouts.RequestHeader}
	}
	a.live, a.drop = context.WithCancel(context.Background())
	return a
}

type aheadListener struct {
	net.Listener
	Direct
	router *Router
	server *http.Server   // what handlers find in contexts; it does not serve
	begin  sync.Once      // of accept
	ready  chan net.Conn  // for net/http
	new    sync.WaitGroup // connections on which no request has come; only accept adds to it

	over chan struct{} // closed by accept, when it has ended and there are no new ones
	err  error         // of accept; read after over

	live context.Context // of connections that are handed over; the second Close ends it, by drop
	drop func()

	mu      sync.Mutex
	conns   map[*directConn]bool
	multi   map[*multiConn]bool
	closing atomic.Bool // written under mu
}

func (a *aheadListener) accept() {
	for {
		conn, err := a.Listener.Accept()
		if err != nil {
			a.new.Wait()
			a.err = err
			close(a.over)
			return
		}
		c := newDirectConn(a, conn)
		a.new.Add(1)
		fault.Go("router", c.serve)
	}
}

// track notes a connection.
func (a *aheadListener) track(c *directConn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns[c] = true
}

func (a *aheadListener) untrack(c *directConn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.conns, c)
}

// handOver gives a connection to net/http.
func (a *aheadListener) handOver(conn net.Conn) {
	select {
	case a.ready <- conn:
	case <-a.over:
		conn.Close()
	case <-a.live.Done():
		conn.Close()
	}
}

// Accept waits for the next connection that is handed over. The first call begins to
// serve.
func (a *aheadListener) Accept() (net.Conn, error) {
	a.begin.Do(func() {
		accept := fault.Loop(a.live, "router", func(context.Context) error { a.accept(); return nil })
		fault.Go("router", func() { _ = accept() })
	})
	select {
	case conn := <-a.ready:
		return conn, nil
	case <-a.over:
		return nil, a.err
	}
}

// Close takes no more connections.
func (a *aheadListener) Close() error {
	closing := a.closing.Load()
	if closing {
		a.drop()
		a.end(isNew)
	}
	err := a.Listener.Close()
	a.mu.Lock()
	a.closing.Store(true)
	a.mu.Unlock()
	a.end(isIdle)
	a.shutdown(closing)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// end closes the connections in a state.
func (a *aheadListener) end(state int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.conns {
		if c.state.CompareAndSwap(state, isEnded) {
			c.client.close()
		}
	}
}

// shutdown lets connections of HTTP/2 have no more requests: with all also those on which none
// has come.
func (a *aheadListener) shutdown(all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.multi {
		if all || c.asked.Load() {
			c.conn.Shutdown()
		}
	}
}

// isDirect reports whether requests for a target of a host go to an app that is reached in plain
// HTTP/1.1, or to none.
func (a *aheadListener) isDirect(host, target string) bool {
	path, _, _ := strings.Cut(target, "?")
	pool := a.router.index.Load().find(hostOf(host), path, a.Shard)
	// Which protocol instances speak that are not there yet is not known.
	return pool == nil || pool.direct && (len(pool.endpoints) > 0 || !pool.sleeps())
}

// guardOf finds the guard of a connection, and TLS's below it; nil for none.
func guardOf(conn net.Conn) (g *guard, t *tls.Conn) {
	switch c := conn.(type) {
	case *guard:
		return c, nil
	case *tlsGuard:
		g, _ = guardOf(c.Conn)
		return g, c.tls
	case interface{ NetConn() net.Conn }:
		return guardOf(c.NetConn())
	}
	return nil, nil
}
