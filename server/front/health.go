package front

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// healthPath is what load balancers ask, without a token.
const healthPath = "/healthz"

const (
	monitorAgent  = "HTTP-Monitor/1.1" // gorouter's: any path is the health then
	healthEvery   = 2 * time.Second    // between looks: callers are anonymous
	healthTimeout = 3 * time.Second
)

// The states of a daemon.
const (
	starting = iota
	serving
	draining
)

// Health tells load balancers whether the daemon takes requests: after it is ready, until
// it drains, and while its database can be read and written.
type Health struct {
	Works func(context.Context) error // whether it can

	state atomic.Int32
	mu    sync.Mutex
	until time.Time // of err
	err   error     // of the last look
}

// Ready says that the daemon serves.
func (h *Health) Ready() { h.state.CompareAndSwap(starting, serving) }

// Drain says that it soon serves no longer.
func (h *Health) Drain() { h.state.Store(draining) }

// wrong is why requests should go elsewhere; "" is nothing.
func (h *Health) wrong(ctx context.Context) string {
	switch h.state.Load() {
	case starting:
		return "starting"
	case draining:
		return "draining"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.After(h.until) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
		defer cancel()
		h.err = h.Works(ctx)
		h.until = time.Now().Add(healthEvery)
	}
	if h.err != nil {
		return "the database cannot be written" // the log says why
	}
	return ""
}

// ServeHTTP answers 200, or 503 with the reason.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	text := "ok\n"
	if why := h.wrong(r.Context()); why != "" {
		w.Header().Set("Connection", "close") // so that the client finds the next daemon
		w.WriteHeader(http.StatusServiceUnavailable)
		text = why + "\n"
	}
	_, _ = io.WriteString(w, text) // the client is gone
}

// isHealth reports whether a request is a load balancer's, which names the machine rather
// than an app.
func isHealth(r *http.Request) bool {
	return r.URL.Path == healthPath || r.UserAgent() == monitorAgent
}

// isMachine reports whether a Host is an address of this machine, or localhost.
func isMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}
