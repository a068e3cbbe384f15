package router

import (
	"context"
	"net"
	"sync"
	"time"
)

// dialer connects to instances, within the budget of connections to them.
type dialer struct {
	Timeout time.Duration
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	gate    *Gate
	// relieve closes connections that are idle. Requests under way have the same
	// budget, so that one which needs a connection finds it full only of idle
	// ones.
	relieve func()
}

// maxDials is how many connections to one endpoint are made at once. The others
// wait: hundreds of new connections at once would keep all processors from other
// requests, since goroutines take turns in the order in which they could run.
const maxDials = 2

// turns dials one endpoint, so that not too many connections to it are made at once.
type turns struct {
	*dialer
	free chan struct{}
}

func (d *dialer) inTurn() *turns { return &turns{d, make(chan struct{}, maxDials)} }

// DialContext connects in its turn. The dialer's timeout includes the wait.
func (t *turns) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	defer t.wait(ctx)()
	return t.dialer.DialContext(ctx, network, address)
}

// wait waits for a turn, which ends when done is called. It also returns when ctx
// ends, whose error dialing returns.
func (t *turns) wait(ctx context.Context) (done func()) {
	select {
	case t.free <- struct{}{}:
		return func() { <-t.free }
	case <-ctx.Done():
		return func() {}
	}
}

// DialContext connects to an endpoint.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	leave := d.enter()
	conn, err := d.connect(ctx, network, address)
	if err != nil {
		leave()
		return nil, err
	}
	return &backendConn{Conn: newQuickConn(conn), leave: leave}, nil
}

// connect connects to an endpoint, outside the budget.
func (d *dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	return d.dial(ctx, network, address)
}

// enter counts a connection until leave is called.
func (d *dialer) enter() (leave func()) {
	if d.gate.backends.Add(1) > int64(d.gate.limits.Backends) {
		d.relieve()
	}
	return sync.OnceFunc(func() { d.gate.backends.Add(-1) })
}

// backendConn is a connection to an endpoint.
type backendConn struct {
	net.Conn
	leave func()
}

// Close closes it.
func (c *backendConn) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}

// closeIdle closes the idle connections to all instances and route services.
func (r *Router) closeIdle() {
	for _, b := range r.index.Load().backends {
		b.closeIdle()
	}
	r.forward.services.CloseIdleConnections()
}
