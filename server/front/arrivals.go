package front

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// arrivals are the connections whose first request no handler has got yet.
// http.Server.Shutdown closes them without an answer, so who came just before
// the daemon ends, or waited in a socket that outlives it, would be refused.
type arrivals struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
	none  chan struct{} // closed when the last has gone; nil until a caller waits
}

// arrivalTime bounds how long clients are waited for that connected and said
// nothing.
const arrivalTime = 2 * time.Second

type arrivalKey struct{}

// watch counts the arrivals of a server that does not serve yet.
func (a *arrivals) watch(srv *http.Server) {
	a.conns = map[net.Conn]bool{}
	before, handler := srv.ConnState, srv.Handler
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			a.came(c)
		case http.StateClosed, http.StateHijacked:
			a.gone(c)
		}
		if before != nil {
			before(c, state)
		}
	}
	inner := srv.ConnContext
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if inner != nil {
			ctx = inner(ctx, c)
		}
		return context.WithValue(ctx, arrivalKey{}, c)
	}
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(arrivalKey{}).(net.Conn); ok {
			a.gone(c)
		}
		handler.ServeHTTP(w, r)
	})
}

func (a *arrivals) came(c net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns[c] = true
}

func (a *arrivals) gone(c net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.conns, c)
	if len(a.conns) == 0 && a.none != nil {
		close(a.none)
		a.none = nil
	}
}

// wait waits until there are none, or ctx ends. The listeners are closed by
// then, and wait is called once.
func (a *arrivals) wait(ctx context.Context) {
	a.mu.Lock()
	if len(a.conns) == 0 {
		a.mu.Unlock()
		return
	}
	none := make(chan struct{})
	a.none = none
	a.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}
