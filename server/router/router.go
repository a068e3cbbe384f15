package router

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"cupola/runtime/egress"
	"cupola/server/bulkhead"
)

// Config is how a Router works; only Log must be set.
type Config struct {
	Log *slog.Logger
	// AccessLog is called with every finished request, on the request's
	// goroutine; may be nil.
	AccessLog func(AccessEntry)
	// Trace returns the Traceparent that a request with these headers has for its
	// instance, "" for one that is not traced; nil: none is.
	Trace    func(http.Header) string
	Timeouts Timeouts
	// DistrustForwarded drops X-Forwarded-* of clients. gorouter believes
	// them, for the load balancer before it; so does the zero value.
	DistrustForwarded bool
	// StickyCookies are the names of cookies that make a session sticky; nil
	// is JSESSIONID (gorouter).
	StickyCookies []string
	// Services says where route services may be that are no apps of ours.
	Services egress.Guard
	// ServiceCAs vouch for route services; nil is the machine's.
	ServiceCAs *x509.CertPool
	// Gate bounds connections and requests; nil is one for a process that may open
	// very many files.
	Gate *Gate
	// Backends says how to speak TLS to instances; nil: the router does not.
	Backends *BackendTLS
	// Dial connects to an endpoint, by TCP; nil is a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// MaxAttempts is how many endpoints a request tries; 0 is 3 (gorouter).
	MaxAttempts int
	// EmptyPool is how long a route answers 503 after its last endpoint left. Then,
	// and always with 0 (gorouter), the route is unknown: 404.
	EmptyPool time.Duration
}

// Timeouts bound what backends and clients may take; zero values take the
// defaults.
type Timeouts struct {
	Dial           time.Duration // to an endpoint; 5 s (gorouter)
	ResponseHeader time.Duration // from the request's end to the answer's head; 900 s (Cloud Foundry)
	BackendIdle    time.Duration // of a connection to an endpoint; 90 s
	RouteService   time.Duration // for a request by way of a route service; 60 s (gorouter)
	RequestHeader  time.Duration // for a client to send its request's head; 10 s
	ClientIdle     time.Duration // of a client's connection; 75 s
	Progress       time.Duration // for a client to send more of a body, or to take more of an answer; 60 s
}

func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Dial:           cmp.Or(t.Dial, 5*time.Second),
		ResponseHeader: cmp.Or(t.ResponseHeader, 900*time.Second),
		BackendIdle:    cmp.Or(t.BackendIdle, 90*time.Second),
		RouteService:   cmp.Or(t.RouteService, time.Minute),
		RequestHeader:  cmp.Or(t.RequestHeader, 10*time.Second),
		ClientIdle:     cmp.Or(t.ClientIdle, 75*time.Second),
		Progress:       cmp.Or(t.Progress, defaultProgress),
	}
}

// Router is an http.Handler that forwards requests by its Table, which is
// empty at first.
type Router struct {
	config   Config
	forward  *forwarder
	dialer   *dialer
	seal     *seal
	requests *inflight
	draining atomic.Bool

	authorities authorities // of instances
	index       atomic.Pointer[index]
	lines       sync.Pool     // of *[]byte, for the access log
	changed     chan struct{} // closed when the table changes; wakes Ports

	dozing sync.Mutex
	dozes  map[string]*doze // by the GUIDs of apps

	mu      sync.Mutex // one Set at a time
	retired map[backendKey]*backend
	wake    func(ctx context.Context, appGUID string) error // see SetWake
}

// New gives a router without routes.
func New(c Config) *Router {
	c.Timeouts = c.Timeouts.withDefaults()
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 3)
	if c.StickyCookies == nil {
		c.StickyCookies = []string{"JSESSIONID"}
	}
	if c.Gate == nil {
		c.Gate = NewGate(bulkhead.LimitsFor(math.MaxUint64))
	}
	if c.AccessLog == nil {
		c.AccessLog = func(AccessEntry) {}
	}
	r := &Router{config: c, seal: newSeal(), requests: newInflight(), retired: map[backendKey]*backend{}, changed: make(chan struct{}, 1), dozes: map[string]*doze{}}
	r.wake = func(context.Context, string) error { return nil }
	r.dialer = &dialer{Timeout: c.Timeouts.Dial, dial: c.Dial, gate: c.Gate, relieve: r.closeIdle}
	if c.Dial == nil {
		r.dialer.dial = (&net.Dialer{}).DialContext
	}
	r.forward = newForwarder(c)
	r.index.Store(&index{})
	return r
}

// Set replaces all routes at once. Requests under way go on with the endpoint
// they have, also where it is gone from t.
func (r *Router) Set(t Table) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.index.Load()
	r.sweepLocked()
	made := (&indexer{old: old, newBackend: r.reviveLocked, secures: r.secures, emptyFor: r.config.EmptyPool, dozeOf: r.dozeOf}).build(t)
	r.index.Store(made)
	r.sweepDozes(made.dozes)
	for key, b := range old.backends {
		if made.backends[key] == nil {
			r.retired[key] = b
			b.retire()
		}
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// reviveLocked gives a backend for an endpoint that the table before had not:
// the retired one, if requests of its are still under way.
func (r *Router) reviveLocked(e Endpoint) *backend {
	if b := r.retired[e.key()]; b != nil {
		delete(r.retired, e.key())
		b.removed.Store(false)
		return b
	}
	turns := r.dialer.inTurn()
	b := &backend{transport: r.newTransport(e, turns), links: newLinks(turns, r.config.Timeouts.BackendIdle), address: e.Address, requests: newInflight()}
	if r.secures(e) {
		b.address = e.TLSAddress
	}
	return b
}

// sweepLocked forgets retired backends without requests.
func (r *Router) sweepLocked() {
	for key, b := range r.retired {
		if b.requests.n.Load() == 0 {
			b.closeIdle()
			delete(r.retired, key)
		}
	}
}

// Routes is how many routes there are by host and path.
func (r *Router) Routes() int { return r.index.Load().routes() }

// Knows reports whether a route leads from a host, in lower case.
func (r *Router) Knows(host string) bool { return r.index.Load().knows(host) }

// Settle waits until no request is under way to an instance that Set has
// removed, so that it can be stopped without cutting one off.
func (r *Router) Settle(ctx context.Context, instanceGUID string) error {
	for _, b := range r.retiredOf(instanceGUID) {
		if err := b.requests.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *Router) retiredOf(instanceGUID string) (found []*backend) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, b := range r.retired {
		if key.instance == instanceGUID {
			found = append(found, b)
		}
	}
	return found
}

// Drain waits until no request is in flight, or until ctx ends. Meanwhile
// responses tell clients to close their connections, so that they reconnect to
// the next process. The caller stops listening.
func (r *Router) Drain(ctx context.Context) error {
	r.draining.Store(true)
	return r.requests.wait(ctx)
}

// ServeHTTP forwards one request, to any endpoint.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.serve(w, req, nil) }

func (r *Router) serve(w http.ResponseWriter, req *http.Request, s *Shard) {
	x := newExchange(r, w, req)
	x.shard = s
	r.requests.enter()
	defer r.requests.leave()
	defer x.finish()
	if r.draining.Load() && req.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	if x.enter() && x.admit() && x.takeSlot() && x.rouse(x.patient) {
		r.forward.serve(x)
	}
}
