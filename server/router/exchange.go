package router

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"cupola/runtime/guid"
)

// exchange is one request and its answer: what the parts of the router know
// of it. It is the ResponseWriter and the context of the forwarded request.
type exchange struct {
	http.ResponseWriter
	context.Context

	router   *Router
	shard    *Shard        // of the listener; nil is all
	request  *http.Request // as it came
	id       string        // X-Vcap-Request-Id
	host     string
	path     string
	instance *instance // addressed by a header; may be nil
	caller   *caller   // of a route with a policy; else nil
	sticky   string    // InstanceGUID of __VCAP_ID__

	service    *url.URL // the request goes to this route service; nil for none
	serviceOf  string   // GUID of the app whose route it is
	forwarded  string   // the URL that the route service is to send it on to
	serviced   bool     // it comes from its route service
	pool       *pool
	candidates []*endpoint // of the first attempt
	endpoint   *endpoint   // that has it, or had it last
	held       bool        // endpoint has it
	client     *client     // that it came on; nil in tests
	slotOf     string      // the app whose slot it has
	slotted    bool        // it has one
	dozes      []*doze     // that count it
	tried      []*backend  // that could not be reached
	body       *countingBody
	trace      string // Traceparent as sent to the endpoint
	started    time.Time
	sent       time.Time // to the first endpoint
	ended      time.Time // as the access log has it
	status     int
	length     int64 // of the answer's body as announced; -1 unknown
	written    int64
	header     http.Header // as sent to the endpoint
	err        string      // X-Cf-RouterError
}

type exchangeKey struct{}

// exchangeOf finds the exchange in the context of a request or one made of it.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// Value makes the exchange findable in its context.
func (x *exchange) Value(key any) any {
	if _, ok := key.(exchangeKey); ok {
		return x
	}
	return x.Context.Value(key)
}

func newExchange(r *Router, w http.ResponseWriter, req *http.Request) *exchange {
	x := new(exchange)
	x.begin(req.Context(), r, w, req)
	if req.ContentLength != 0 && req.Body != nil {
		x.body = &countingBody{ReadCloser: req.Body}
	}
	return x
}

// begin begins the exchange of a request; the caller sets its body.
func (x *exchange) begin(ctx context.Context, r *Router, w http.ResponseWriter, req *http.Request) {
	*x = exchange{
		ResponseWriter: w, Context: ctx, router: r, request: req,
		id: guid.Fast(), host: hostOf(req.Host), path: pathOf(req), started: time.Now(),
	}
}

// pathOf is the path of the request as it was sent.
func pathOf(req *http.Request) string {
	if strings.HasPrefix(req.RequestURI, "/") {
		path, _, _ := strings.Cut(req.RequestURI, "?")
		return path
	}
	return req.URL.EscapedPath()
}

// WriteHeader records the status and passes it on.
func (x *exchange) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write passes on at once what an endpoint sends, unless it is the end, which
// the server flushes itself. (ReverseProxy's own flushing, which it does for
// answers of unknown length, costs small answers a second write.)
func (x *exchange) Write(p []byte) (int, error) {
	n, err := x.ResponseWriter.Write(p)
	x.written += int64(n)
	if err == nil && x.written < x.length {
		err = http.NewResponseController(x.ResponseWriter).Flush()
	}
	return n, err
}

// Unwrap lets http.ResponseController find the real writer.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// Hijack takes the connection over. What the client has sent after its request comes first;
// ReverseProxy would lose it.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err == nil && rw.Reader.Buffered() > 0 {
		early, _ := rw.Reader.Peek(rw.Reader.Buffered()) // has no error for what is buffered
		all := &guard{Conn: conn, early: slices.Clone(early)}
		all.raw.Store(true)
		conn = all
	}
	return conn, rw, err
}

// resolve finds the endpoints that may serve the request by the table of now.
func (x *exchange) resolve() []*endpoint {
	x.pool = x.router.index.Load().find(x.host, x.path, x.shard)
	if x.pool == nil {
		return nil
	}
	endpoints := x.shard.among(x.pool.endpoints)
	if x.instance != nil {
		endpoints = x.instance.among(endpoints)
	}
	return x.allowed(endpoints)
}

// reresolve resolves the route again for an admitted request. If the route has
// a policy by now that does not allow the caller, it returns no endpoints.
func (x *exchange) reresolve() []*endpoint {
	found := x.resolve()
	if x.pool != nil && x.pool.policy != nil && (x.caller == nil || !x.pool.policy.named(*x.caller)) {
		return nil
	}
	return found
}

// pick gives the request one of candidates that it has not tried; false when
// there is none. One that Set removed meanwhile is let go again: Settle may
// have said already that it is idle.
func (x *exchange) pick(candidates []*endpoint) bool {
	for x.pool != nil {
		e := x.pool.pick(candidates, choice{sticky: x.sticky, tried: x.tried, key: x.pool.key(x.request.Header)})
		if e == nil {
			return false
		}
		e.acquire()
		if !e.removed.Load() {
			x.endpoint, x.held = e, true
			return true
		}
		e.release()
		candidates = x.reresolve()
	}
	return false
}

// attempt sends the request to one endpoint after the other until one can be
// connected to. Whatever else goes wrong is not tried again: the app may have acted
// on the request.
func (x *exchange) attempt(send func() error) error {
	candidates, lastErr := x.candidates, errNoEndpoint
	for range x.router.config.MaxAttempts {
		if !x.pick(candidates) {
			break
		}
		err := send()
		if err == nil {
			x.endpoint.markUp()
			return nil
		}
		if x.Err() != nil || !dialFailed(err) && !(handshakeFailed(err) && x.unsent()) {
			return err
		}
		lastErr = err
		if isImpostor(err) {
			x.endpoint.prune(time.Now())
		}
		x.unreachable()
		candidates = x.reresolve() // the table may have changed just now
	}
	return lastErr
}

// unreachable notes that the endpoint could not be connected to and lets it go.
func (x *exchange) unreachable() {
	x.endpoint.markDown(time.Now())
	x.tried = append(x.tried, x.endpoint.backend)
	x.release()
}

// unsent reports whether nothing of the request's body was sent.
func (x *exchange) unsent() bool { return x.body == nil || x.body.n.Load() == 0 }

// stalled reports whether the client sent nothing of the body for too long.
func (x *exchange) stalled() bool {
	b, ok := x.request.Body.(*progressBody)
	return ok && b.hasStalled()
}

// liftProgress lets the client be silent from now on.
func (x *exchange) liftProgress() {
	if b, ok := x.request.Body.(*progressBody); ok {
		b.lift()
	}
}

func (x *exchange) release() {
	if x.held {
		x.held = false
		x.endpoint.release()
	}
}

// finish ends the books of the exchange.
func (x *exchange) finish() {
	x.release()
	x.leave()
	x.log()
}

// countingBody counts what was read of a request's body, which goes on beside
// the answer.
type countingBody struct {
	io.ReadCloser
	n      atomic.Int64
	broken atomic.Bool // it ended other than it should
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	if err != nil && err != io.EOF {
		b.broken.Store(true)
	}
	return n, err
}
