package router

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"cupola/server/router/h2"
)

// multiConn is a client's connection of HTTP/2.
type multiConn struct {
	direct *directConn // that it was
	ahead  *aheadListener
	conn   *h2.Conn
	ctx    context.Context
	origin h2.Origin
	asked  atomic.Bool // a request has come
	first  sync.Once
	host   atomic.Pointer[reservation] // of the request before
}

// reservation says whether a host is reserved.
type reservation struct {
	host string
	is   bool
}

// multiplexes reports whether connections of HTTP/2 are served here.
func (c *directConn) multiplexes() bool {
	return c.ahead.Handler != nil && c.client != nil && tcpOf(c.client) != nil
}

// hasPreface reports whether the client has begun to speak HTTP/2.
func (c *directConn) hasPreface() bool {
	have, _ := c.in.Peek(c.in.Buffered()) // has no error for what is buffered
	return c.fresh && c.tls == nil && bytes.HasPrefix(have, []byte(http2.ClientPreface))
}

// leaveForMulti serves a client that has begun to speak HTTP/2 without TLS.
func (c *directConn) leaveForMulti() {
	early, _ := c.in.Peek(c.in.Buffered()) // likewise
	c.setDeadline(time.Time{})
	c.ahead.untrack(c)
	c.serveMulti(c.conn, early)
}

// serveMulti serves HTTP/2; early was read from the connection before.
func (c *directConn) serveMulti(conn net.Conn, early []byte) {
	ctx := context.WithValue(c.ctx, http.ServerContextKey, c.ahead.server) // ReverseProxy breaks no answer off without one
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, conn.LocalAddr())
	m := &multiConn{direct: c, ahead: c.ahead, ctx: ctx, origin: h2.Origin{Remote: conn.RemoteAddr().String()}}
	if secure, ok := conn.(*tls.Conn); ok {
		state := secure.ConnectionState()
		m.origin.TLS = &state
	}
	r, t := c.router, c.router.config.Timeouts
	c.client.stall = t.Progress
	m.conn = h2.New(conn, early, &h2.Config{
		Serve: m.serve, Busy: r.requests.enter, Quiet: func() { r.requests.leave() },
		Ending: func() { c.client.unread.Store(true) }, Stalled: func() { c.client.gate.count(slowReader) },
		Head: t.RequestHeader, Idle: t.ClientIdle, Progress: t.Progress, MaxHeader: maxHeaderBytes,
	})
	c.in = nil
	m.track()
	defer m.untrack()
	m.conn.Run()
	m.first.Do(c.known) // requests may still be under way
}

// track notes the connection. One that comes while the listener closes may have one request.
func (m *multiConn) track() {
	m.ahead.mu.Lock()
	defer m.ahead.mu.Unlock()
	m.ahead.multi[m] = true
	if m.ahead.live.Err() != nil {
		m.conn.Shutdown()
	}
}

func (m *multiConn) untrack() {
	m.ahead.mu.Lock()
	defer m.ahead.mu.Unlock()
	delete(m.ahead.multi, m)
}

// begin notes that a request has come.
func (m *multiConn) begin() {
	m.asked.Store(true)
	m.first.Do(m.direct.known)
	if m.ahead.closing.Load() {
		m.conn.Shutdown()
	}
}

// serve answers a request.
func (m *multiConn) serve(s *h2.Stream) {
	m.ahead.router.requests.enter()
	defer m.ahead.router.requests.leave()
	m.begin()
	q, _ := multiCalls.Get().(*multiCall)
	if q.take(m, s) {
		q.serve()
	} else {
		s.ServeHTTP(m.ctx, m.origin, m.ahead.Handler)
	}
	_ = s.Flush() // fails if the client is gone
	q.forget()
	multiCalls.Put(q)
}

// generalOptions answers "OPTIONS *", as net/http's server does.
func generalOptions(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodOptions && req.RequestURI == "*" {
			w.Header().Set("Content-Length", "0")
			return
		}
		next.ServeHTTP(w, req)
	})
}

// isReserved reports whether a host is no app's.
func (m *multiConn) isReserved(host string) bool {
	if m.ahead.Reserved == nil {
		return false
	}
	if was := m.host.Load(); was != nil && was.host == host {
		return was.is
	}
	is := m.ahead.Reserved(host)
	m.host.Store(&reservation{host, is})
	return is
}

// multiCall is a plain request on a connection of HTTP/2.
type multiCall struct {
	call
	multi  *multiConn
	stream *h2.Stream
	buffer []byte // of the request's body

	due    http.Header // of the answer, which was not sent yet; nil once it was
	status int
	broken error // the endpoint failed before anything of the answer was sent
}

var multiCalls = sync.Pool{New: func() any {
	q := new(multiCall)
	q.call.init(q, http.Request{Proto: "HTTP/2.0", ProtoMajor: 2})
	return q
}}

// take takes a request, if it is one that is forwarded directly.
func (q *multiCall) take(m *multiConn, s *h2.Stream) bool {
	q.multi, q.stream, q.router = m, s, m.ahead.router
	q.due, q.broken, q.content = nil, nil, nil
	if s.Length < 0 || s.Length > clientBytes || m.isReserved(s.Host) ||
		!q.head.Compose(s.Method, s.Path, s.Host, s.Length, s.Fields) || !m.ahead.isDirect(s.Host, s.Path) {
		return false
	}
	if s.Bodyless() {
		return true
	}
	body, ok := s.Small(q.buffer[:0], bodyTime)
	q.buffer, q.content = body, body
	return ok
}

// forget forgets the request.
func (q *multiCall) forget() {
	q.x, q.multi, q.stream, q.request.TLS = exchange{}, nil, nil, nil
}

// serve forwards the request and its answer.
func (q *multiCall) serve() {
	q.request.RemoteAddr, q.request.TLS = q.multi.origin.Remote, q.multi.origin.TLS
	q.begin(q.multi.ctx, q.multi.ahead.Shard)
	x := &q.x
	defer x.finish()
	if !x.enter() || !x.admit() || !x.takeSlot() || !x.rouse(q.patient) {
		q.refuse()
		return
	}
	q.prepare()
	if err := x.attempt(q.send); err != nil {
		x.failed(err)
		q.refuse()
		return
	}
	q.forward()
}

// patient lets the request wait until its client goes.
func (q *multiCall) patient() (context.Context, func()) {
	ctx, cancel := context.WithCancel(q.multi.ctx)
	q.stream.OnGone(cancel)
	return ctx, func() {
		q.stream.OnGone(nil)
		cancel()
	}
}

// refuse sends the refusal, unless the client is gone.
func (q *multiCall) refuse() {
	r := &q.refusal
	if r.status == statusClientGone {
		return
	}
	r.header["Content-Length"] = []string{strconv.Itoa(len(r.body))}
	bodyless := q.head.Method == http.MethodHead
	if q.stream.WriteHead(r.status, r.header, bodyless) == nil && !bodyless {
		_ = q.stream.WriteData(r.body, true) // the client is gone
	}
}

// inform passes a 1xx answer on.
func (q *multiCall) inform(status int, h http.Header) error {
	if err := q.stream.WriteHead(status, h, false); err != nil {
		return err
	}
	return q.stream.Flush()
}

// slowly is called when the endpoint does not answer at once. It sends what there is of the
// answer, and breaks the wait off when the client goes.
func (q *multiCall) slowly() {
	q.link.setDeadline(q.answerTime())
	q.watch()
	if q.due != nil {
		_ = q.sendHead(false) // fails again with the next bytes
		_ = q.stream.Flush()  // likewise
	}
}

// watch has reads from the endpoint end when the client goes.
func (q *multiCall) watch() {
	tcp := q.link.tcp
	q.stream.OnGone(func() { _ = tcp.SetReadDeadline(time.Now()) }) // fails if it is closed, as reads do then
}

// gone ends the watch, and reports whether the client has gone.
func (q *multiCall) gone() bool { return q.stream.OnGone(nil) }

// forward sends the answer to the client.
func (q *multiCall) forward() {
	defer func() { // also after a panic
		if q.link != nil {
			q.drop()
		}
	}()
	status, length, h := q.answered()
	if q.link.patient {
		q.watch() // again: the deadline is another
	}
	if q.odd != nil || q.reply.Hop {
		dropHopByHop(h)
	}
	q.x.answered(status, length, h)
	q.refusal.header = h // where the access log looks for an app's X-Cf-RouterError
	if !q.relay(status, length, h) {
		if q.broken != nil {
			q.refuseBroken()
		}
		return
	}
	if !q.last() {
		q.keep()
	}
}

// refuseBroken answers for an endpoint that failed after the head of its answer, of which the
// client has got nothing.
func (q *multiCall) refuseBroken() {
	if q.drop() {
		q.broken = context.Canceled
	}
	q.resetRefusal()
	q.x.failed(q.broken)
	q.refuse()
}

// relay sends the answer's head and body; false if either side has failed.
func (q *multiCall) relay(status int, length int64, h http.Header) bool {
	q.due, q.status = h, status
	if status == http.StatusNoContent {
		delete(h, "Content-Length")
	}
	q.announce(h)
	if q.head.Method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified || length == 0 {
		return q.sendHead(true) == nil
	}
	if q.odd != nil {
		return q.copyBody(q.odd.Body)
	}
	q.body.Reset(q.link.in, length, q.reply.Chunked)
	return q.copyBody(&q.body)
}

func (q *multiCall) sendHead(end bool) error {
	h := q.due
	q.due = nil
	return q.stream.WriteHead(q.status, h, end)
}

// copyBody sends the head, and the body after it, as it comes.
func (q *multiCall) copyBody(body io.Reader) bool {
	buffer := q.router.forward.buffers.Get()
	defer q.router.forward.buffers.Put(buffer)
	for {
		n, err := body.Read(buffer)
		last := err == io.EOF
		if n == 0 && err != nil && !last {
			if q.due != nil {
				q.broken = err
			}
			return false
		}
		if q.due != nil && q.sendHead(false) != nil {
			return false
		}
		if q.sendData(buffer[:n], last) != nil {
			return false
		}
		q.x.written += int64(n)
		if err != nil {
			return last
		}
		if q.stream.Flush() != nil {
			return false
		}
	}
}

// sendData sends the next bytes of the body, and with the last ones its trailers.
func (q *multiCall) sendData(p []byte, last bool) error {
	if !last {
		return q.stream.WriteData(p, false)
	}
	trailer := q.body.Trailer
	if q.odd != nil {
		trailer = q.odd.Trailer
	}
	if len(trailer) == 0 {
		return q.stream.WriteData(p, true)
	}
	if err := q.stream.WriteData(p, false); err != nil {
		return err
	}
	return q.stream.WriteTrailer(trailer)
}
