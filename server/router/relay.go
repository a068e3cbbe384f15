package router

import (
	"context"
	"io"
	"log/slog"
	"net"
	"time"

	"cupola/runtime/fault"
)

// relay serves one connection of a client. A client that no endpoint can be
// found for sees its connection reset.
func (p *Ports) relay(live context.Context, number int, at *port, client *net.TCPConn) {
	defer client.Close()
	if !at.track(client) {
		return
	}
	defer at.untrack(client)
	done, ok := p.router.enterPort(number, client)
	if !ok {
		_ = client.SetLinger(0)
		return
	}
	defer done()
	defer p.router.dialer.enter()()
	defer p.rouse(live, number)()
	app, e := p.connect(live, number)
	if app == nil {
		_ = client.SetLinger(0) // a reset, as if nothing listened
		return
	}
	defer e.release()
	defer app.Close()
	if !at.track(app) {
		return
	}
	defer at.untrack(app)
	join(client, app)
}

// rouse counts a connection for the apps of its route until done is called, and waits until
// they are awake. For one that cannot be woken there is no endpoint.
func (p *Ports) rouse(live context.Context, number int) (done func()) {
	pool := p.router.index.Load().ports[number]
	if pool == nil {
		return func() {}
	}
	for _, d := range pool.dozes {
		d.enter()
	}
	for _, d := range pool.dozes {
		if err := d.wait(live); err != nil {
			p.router.config.Log.Info("app not woken", slog.Int("port", number), slog.String("app_guid", d.app), slog.Any("err", err))
		}
	}
	return func() {
		for _, d := range pool.dozes {
			d.leave()
		}
	}
}

// connect finds an endpoint that can be reached, and acquires it; nil when there
// is none.
func (p *Ports) connect(live context.Context, number int) (*net.TCPConn, *endpoint) {
	r := p.router
	var tried []*backend
	for range r.config.MaxAttempts {
		pool := r.index.Load().ports[number]
		if pool == nil {
			return nil, nil
		}
		e := pool.pick(pool.endpoints, choice{tried: tried})
		if e == nil {
			return nil, nil
		}
		e.acquire()
		if e.removed.Load() { // Settle may have said already that it is idle
			e.release()
			continue
		}
		conn, err := r.dialer.connect(live, "tcp", e.Address)
		if app, isTCP := conn.(*net.TCPConn); err == nil && isTCP {
			e.markUp()
			return app, e
		}
		e.markDown(time.Now())
		tried = append(tried, e.backend)
		e.release()
		r.config.Log.Info("endpoint failed", slog.Int("port", number), slog.String("app_guid", e.AppGUID), slog.String("instance_guid", e.InstanceGUID), slog.Any("err", err))
	}
	return nil, nil
}

// join copies both ways until both sides have ended. A side that ends properly
// leaves the other way open; one that breaks off breaks the other.
func join(a, b *net.TCPConn) {
	done := make(chan struct{})
	fault.Go("router", func() {
		defer close(done)
		pour(a, b)
	})
	pour(b, a)
	<-done
}

// pour copies what comes from one side to the other: in the kernel, where that
// can.
func pour(to, from *net.TCPConn) {
	_, err := io.Copy(to, from)
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		for _, c := range []*net.TCPConn{to, from} {
			_ = c.SetLinger(0)
			c.Close()
		}
	}
}
