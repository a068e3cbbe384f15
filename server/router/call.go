package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"cupola/server/router/wire"
)

// call is a plain request that is forwarded directly, and the answer of its endpoint. All that it needs is kept for the
// next one.
type call struct {
	router   *Router
	asker    asker
	head     wire.Request
	content  []byte // the request's body
	request  http.Request
	url      url.URL
	sending  http.Header // of the forwarded request
	x        exchange
	received countingBody
	writer   headWriter
	refusal  refusal
	refused  http.Header  // of refusal
	send     func() error // c.roundTrip
	slow     func()       // c.asker.slowly

	link  *link // that has the request
	reply wire.Response
	body  wire.Body
	odd   *http.Response // an answer that is not plain; nil for others
	begun bool           // the answer's head was read
}

// asker is the client's side of a call.
type asker interface {
	// inform passes a 1xx answer on.
	inform(status int, h http.Header) error
	// slowly is called when the endpoint does not answer at once. It sets how long the
	// endpoint may take, and watches whether the client goes.
	slowly()
	// gone ends the watch, and reports whether the client has gone.
	gone() bool
}

// init prepares for the requests of an asker, which begin as r.
func (c *call) init(a asker, r http.Request) {
	c.asker, c.request = a, r
	c.request.Body, c.request.URL = http.NoBody, &c.url
	c.sending, c.refused = http.Header{}, http.Header{}
	c.send, c.slow = c.roundTrip, a.slowly
}

// begin makes the request of its head.
func (c *call) begin(ctx context.Context, s *Shard) {
	h, r := &c.head, &c.request
	r.Method, r.RequestURI, r.Host, r.Header, r.ContentLength, r.Close = h.Method, h.Target, h.Host, h.Header, h.Length, h.Close
	path, query, _ := strings.Cut(h.Target, "?")
	c.url = url.URL{Path: path, RawQuery: query}
	if strings.IndexByte(path, '%') >= 0 {
		c.url.RawPath = path
		c.url.Path, _ = url.PathUnescape(path) // was checked
	}
	c.resetRefusal()
	c.x.begin(ctx, c.router, &c.refusal, r)
	c.x.shard = s
	if h.Length > 0 {
		c.received.n.Store(0)
		c.x.body = &c.received
	}
}

// resetRefusal begins a refusal.
func (c *call) resetRefusal() {
	clear(c.refused)
	c.refusal.header, c.refusal.status, c.refusal.body = c.refused, 0, c.refusal.body[:0]
}

// prepare makes the header of the forwarded request, but for what depends on its
// endpoint.
func (c *call) prepare() {
	clear(c.sending)
	for key, values := range c.head.Header {
		c.sending[key] = values
	}
	if c.head.Hop {
		dropHopByHop(c.sending)
	}
	if c.head.Upgrade != "" {
		c.sending["Connection"], c.sending["Upgrade"] = upgradeValue, []string{c.head.Upgrade}
	}
	c.x.setForwarded(c.sending)
	c.x.header = c.sending
	c.x.sent = time.Now()
}

// errTimeout is net/http's for an endpoint that takes too long.
var errTimeout = errors.New("net/http: timeout awaiting response headers")

// roundTrip sends the request to the exchange's endpoint, and reads the head of the
// answer. A connection that the endpoint has closed meanwhile is no answer: a request
// that may be repeated is sent again.
func (c *call) roundTrip() error {
	e := c.x.endpoint
	for {
		l, err := e.links.get(e.address, c.x.sent)
		if err != nil {
			return err
		}
		c.link, c.begun, c.odd = l, false, nil
		if err = c.ask(); err == nil {
			return nil
		}
		gone := c.drop()
		if gone {
			return context.Canceled
		}
		if !l.reused || l.came || !c.repeatable() || !hungUp(err) {
			return err
		}
	}
}

// repeatable reports whether a request may be sent twice (net/http: isReplayable).
func (c *call) repeatable() bool {
	if c.head.Length > 0 {
		return false
	}
	switch c.head.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return c.sending["Idempotency-Key"] != nil || c.sending["X-Idempotency-Key"] != nil
}

// hungUp reports whether an error is the other side's end.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// ask writes the request and reads the head of the answer.
func (c *call) ask() error {
	setEndpoint(c.sending, c.x.endpoint)
	buffer := c.router.forward.buffers.Get()
	h := &c.head
	b := c.writer.request(buffer[:0], h.Method, h.Target, h.Host, c.sending, h.Length)
	b = append(b, c.content...)
	c.link.begin(c.x.sent, c.slow)
	err := c.link.ask(b)
	c.received.n.Store(h.Length)
	c.router.forward.buffers.Put(buffer)
	if failed := c.readHead(); failed != nil {
		if err == nil {
			err = failed
		}
		return err
	}
	return nil // it may have answered before it had all
}

// readHead reads the head of the answer; those of 1xx are passed on.
func (c *call) readHead() error {
	for {
		v, err := c.parse()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errTimeout
		case err != nil:
			return err
		case v == wire.Odd:
			return c.readOdd()
		}
		if c.reply.Status >= 200 || c.switches(c.reply.Status, c.reply.Header) {
			c.begun = true
			return nil
		}
		if err := c.passOn(c.reply.Status, c.reply.Header); err != nil {
			return err
		}
	}
}

// parse reads a head, if it is plain.
func (c *call) parse() (wire.Verdict, error) {
	in := c.link.in
	for want := 1; ; {
		if _, err := in.Peek(want); err != nil {
			if err == io.EOF && want > 1 {
				err = io.ErrUnexpectedEOF
			}
			return wire.Partial, err
		}
		have, _ := in.Peek(in.Buffered()) // has no error for what is buffered
		n, v := c.reply.Parse(have)
		switch {
		case v == wire.Plain:
			_, _ = in.Discard(n)
			return v, nil
		case v == wire.Odd || len(have) == in.Size():
			return wire.Odd, nil
		}
		want = len(have) + 1
	}
}

// readOdd reads an answer that is not plain as net/http does.
func (c *call) readOdd() error {
	for {
		res, err := http.ReadResponse(c.link.in, &http.Request{Method: c.head.Method}) //nolint:bodyclose // the connection is closed after it
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errTimeout
		case err != nil:
			return fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", err)
		case res.StatusCode >= 200 || c.switches(res.StatusCode, res.Header):
			c.odd, c.begun = res, true
			return nil
		}
		if err := c.passOn(res.StatusCode, res.Header); err != nil {
			return err
		}
	}
}

// passOn passes a 1xx answer on.
func (c *call) passOn(status int, h http.Header) error {
	if status == http.StatusSwitchingProtocols {
		return fmt.Errorf("backend tried to switch protocol %q when %q was requested", upgradeOf(h), c.head.Upgrade)
	}
	delete(h, "Content-Length")
	delete(h, "Transfer-Encoding")
	if c.asker.inform(status, h) != nil {
		return context.Canceled
	}
	return nil
}

// answerTime is until when the endpoint may take to begin its answer; zero once it has.
func (c *call) answerTime() (until time.Time) {
	if c.begun {
		return until
	}
	until = c.x.sent.Add(c.router.config.Timeouts.ResponseHeader)
	if soon := time.Now().Add(patience); until.Before(soon) { // this process did not run for a while, maybe since before it asked
		until = soon
	}
	return until
}

// answered is the answer that has come.
func (c *call) answered() (status int, length int64, h http.Header) {
	c.lifted()
	if c.odd != nil {
		return c.odd.StatusCode, c.odd.ContentLength, c.odd.Header
	}
	return c.reply.Status, c.reply.Length, c.reply.Header
}

// announce names the trailers that the answer announces.
func (c *call) announce(h http.Header) {
	if c.odd != nil && len(c.odd.Trailer) > 0 {
		h["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(c.odd.Trailer)), ", ")}
	}
}

// last reports whether the connection to the endpoint has no request after this one.
func (c *call) last() bool { return c.odd != nil || c.reply.Close || c.link.in.Buffered() > 0 }

// lifted lets the endpoint be silent for as long as it likes, once it has begun to
// answer.
func (c *call) lifted() {
	if c.link.patient {
		c.link.setDeadline(time.Time{})
	}
}

// drop closes the connection to the endpoint. It reports whether the client has gone.
func (c *call) drop() (gone bool) {
	gone = c.asker.gone()
	c.link.close()
	c.link = nil
	return gone
}

// keep ends the request's use of the connection to the endpoint, and keeps it for
// others. It reports whether the client is still there.
func (c *call) keep() bool {
	if c.asker.gone() {
		c.drop()
		return false
	}
	used := c.x.sent
	if c.link.patient { // that is a while ago
		used = time.Now()
	}
	c.x.endpoint.links.put(c.link, used)
	c.link = nil
	return true
}

// refusal is the ResponseWriter of an answer that the router gives itself.
type refusal struct {
	header http.Header
	status int
	body   []byte
}

// Header is the answer's.
func (r *refusal) Header() http.Header { return r.header }

// WriteHeader notes the status.
func (r *refusal) WriteHeader(status int) { r.status = status }

// Write keeps what refuse sends.
func (r *refusal) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}
