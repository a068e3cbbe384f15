package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cupola/server/router/wire"
)

// directAnswer is how a directConn sends a request to an endpoint and takes its
// answer.
type directAnswer struct {
	*directConn
	slow func() // a.slowly

	link    *link // that has the request
	reply   wire.Response
	body    wire.Body
	odd     *http.Response // an answer that is not plain; nil for others
	begun   bool           // the answer's head was read
	pending []byte         // of the answer: not sent yet
	broken  error          // the endpoint failed before anything of the answer was sent
	watch   *watch         // of the client; nil until the endpoint takes its time
}

// errTimeout is net/http's for an endpoint that takes too long.
var errTimeout = errors.New("net/http: timeout awaiting response headers")

// roundTrip sends the request to the exchange's endpoint, and reads the head of the
// answer. A connection that the endpoint has closed meanwhile is no answer: a request
// that may be repeated is sent again.
func (c *directConn) roundTrip() error {
	a, e := &c.answer, c.x.endpoint
	for {
		l, err := e.links.get(e.address, c.x.sent)
		if err != nil {
			return err
		}
		a.link, a.begun, a.odd, a.pending, a.broken = l, false, nil, nil, nil
		if err = a.ask(); err == nil {
			return nil
		}
		gone := a.drop()
		if gone {
			return context.Canceled
		}
		if !l.reused || l.came || !c.repeatable() || !hungUp(err) {
			return err
		}
	}
}

// repeatable reports whether a request may be sent twice (net/http: isReplayable).
func (c *directConn) repeatable() bool {
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
func (a *directAnswer) ask() error {
	setEndpoint(a.sending, a.x.endpoint)
	buffer := a.router.forward.buffers.Get()
	h := &a.head
	b := a.writer.request(buffer[:0], h.Method, h.Target, h.Host, a.sending, h.Length)
	sent, _ := a.in.Peek(a.headLen + int(h.Length)) // is buffered
	b = append(b, sent[a.headLen:]...)
	a.link.begin(a.x.sent, a.slow)
	err := a.link.ask(b)
	a.received.n.Store(h.Length)
	a.router.forward.buffers.Put(buffer)
	if failed := a.readHead(); failed != nil {
		if err == nil {
			err = failed
		}
		return err
	}
	return nil // it may have answered before it had all
}

// readHead reads the head of the answer; those of 1xx are passed on.
func (a *directAnswer) readHead() error {
	for {
		v, err := a.parse()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errTimeout
		case err != nil:
			return err
		case v == wire.Odd:
			return a.readOdd()
		}
		if a.reply.Status >= 200 || a.switches(a.reply.Status, a.reply.Header) {
			a.begun = true
			return nil
		}
		if err := a.inform(a.reply.Status, a.reply.Header); err != nil {
			return err
		}
	}
}

// parse reads a head, if it is plain.
func (a *directAnswer) parse() (wire.Verdict, error) {
	in := a.link.in
	for want := 1; ; {
		if _, err := in.Peek(want); err != nil {
			if err == io.EOF && want > 1 {
				err = io.ErrUnexpectedEOF
			}
			return wire.Partial, err
		}
		have, _ := in.Peek(in.Buffered()) // has no error for what is buffered
		n, v := a.reply.Parse(have)
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
func (a *directAnswer) readOdd() error {
	for {
		res, err := http.ReadResponse(a.link.in, &http.Request{Method: a.head.Method}) //nolint:bodyclose // the connection is closed after it
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errTimeout
		case err != nil:
			return fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", err)
		case res.StatusCode >= 200 || a.switches(res.StatusCode, res.Header):
			a.odd, a.begun = res, true
			return nil
		}
		if err := a.inform(res.StatusCode, res.Header); err != nil {
			return err
		}
	}
}

// inform passes a 1xx answer on.
func (a *directAnswer) inform(status int, h http.Header) error {
	if status == http.StatusSwitchingProtocols {
		return fmt.Errorf("backend tried to switch protocol %q when %q was requested", upgradeOf(h), a.head.Upgrade)
	}
	delete(h, "Content-Length")
	delete(h, "Transfer-Encoding")
	b := a.writer.fields(a.writer.status(nil, status), h)
	_, err := a.conn.Write(append(b, "\r\n"...))
	if err != nil {
		return context.Canceled
	}
	return nil
}

// slowly is called when the endpoint does not answer at once. It sends what there is
// of the answer, and watches whether the client goes.
func (a *directAnswer) slowly() {
	var until time.Time
	if !a.begun {
		until = a.x.sent.Add(a.router.config.Timeouts.ResponseHeader)
		if soon := time.Now().Add(patience); until.Before(soon) { // this process did not run for a while, maybe since before it asked
			until = soon
		}
	}
	a.link.setDeadline(until)
	tcp := a.link.tcp
	a.watch = watchClient(a.directConn, func() { _ = tcp.SetReadDeadline(time.Now()) }) // fails if it is closed, as reads do then
	if len(a.pending) > 0 {
		_ = a.flush() // fails again with the next bytes
	}
}

// lifted lets the endpoint be silent for as long as it likes, once it has begun to
// answer.
func (a *directAnswer) lifted() {
	if a.link.patient {
		a.link.setDeadline(time.Time{})
	}
}

// flush sends what is pending.
func (a *directAnswer) flush() error {
	b := a.pending
	a.pending = nil
	_, err := a.conn.Write(b)
	return err
}

// gone ends the watch of the client, and reports whether it has gone.
func (a *directAnswer) gone() bool {
	if a.watch == nil {
		return false
	}
	defer func() { a.watch = nil }()
	return a.watch.stop()
}

// drop closes the connection to the endpoint. It reports whether the client has gone.
func (a *directAnswer) drop() (gone bool) {
	gone = a.gone()
	a.link.close()
	a.link = nil
	return gone
}

// keep ends the request's use of the connection to the endpoint, and keeps it for
// others. It reports whether the client is still there.
func (a *directAnswer) keep() bool {
	if a.gone() {
		a.drop()
		return false
	}
	used := a.x.sent
	if a.link.patient { // that is a while ago
		used = time.Now()
	}
	a.x.endpoint.links.put(a.link, used)
	a.link = nil
	return true
}

// forward sends the answer to the client. It reports whether the connection can
// have another request.
func (a *directAnswer) forward() bool {
	a.discard()
	defer func() { // also after a panic
		if a.link != nil {
			a.drop()
		}
	}()
	status, length, h := a.reply.Status, a.reply.Length, a.reply.Header
	if a.odd != nil {
		status, length, h = a.odd.StatusCode, a.odd.ContentLength, a.odd.Header
	}
	a.lifted()
	if status == http.StatusSwitchingProtocols {
		a.x.answered(status, 0, h)
		a.refusal.header = h // as below
		a.tunnel(h)
		return false
	}
	if a.odd != nil || a.reply.Hop {
		dropHopByHop(h)
	}
	a.x.answered(status, length, h)
	a.refusal.header = h // where the access log looks for an app's X-Cf-RouterError
	if !a.relay(status, length, h) {
		return a.broken != nil && a.refuseBroken()
	}
	if a.odd != nil || a.reply.Close || a.link.in.Buffered() > 0 {
		return !a.drop() && !a.ends()
	}
	return a.keep() && !a.ends()
}

// refuseBroken answers for an endpoint that failed after the head of its answer, of which the
// client has got nothing.
func (a *directAnswer) refuseBroken() bool {
	if a.drop() {
		a.broken = context.Canceled
	}
	clear(a.refused)
	a.refusal.header = a.refused
	a.x.failed(a.broken)
	return a.refuse()
}

// relay sends the answer's head and body; false if either side has failed.
func (a *directAnswer) relay(status int, length int64, h http.Header) bool {
	buffer := a.router.forward.buffers.Get()
	defer a.router.forward.buffers.Put(buffer)
	bodyless := a.head.Method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified
	chunked := !bodyless && length < 0
	b := a.appendHead(buffer[:0], status, chunked, h)
	if bodyless || length == 0 {
		_, err := a.conn.Write(b)
		return err == nil
	}
	if a.odd != nil {
		return a.copyBody(b, a.odd.Body, chunked)
	}
	a.body.Reset(a.link.in, length, a.reply.Chunked)
	return a.copyBody(b, &a.body, chunked)
}

// appendHead appends the head of the answer. Like net/http's server it drops what
// says something of a body where there is none.
func (a *directAnswer) appendHead(b []byte, status int, chunked bool, h http.Header) []byte {
	switch status {
	case http.StatusNotModified:
		delete(h, "Content-Type")
		delete(h, "Content-Length")
	case http.StatusNoContent:
		delete(h, "Content-Length")
	}
	if a.odd != nil && len(a.odd.Trailer) > 0 {
		h["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(a.odd.Trailer)), ", ")}
	}
	b = a.writer.response(b, status, h)
	if a.ends() {
		b = append(b, "Connection: close\r\n"...)
	}
	if chunked {
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	return append(b, "\r\n"...)
}

// chunkRoom is for what comes before a chunk's data, and after it.
const chunkRoom = 8

// copyBody sends b, which is a head, and the body after it, as it comes: the head with
// what has come with it.
func (a *directAnswer) copyBody(b []byte, body io.Reader, chunked bool) bool {
	for {
		b = slices.Grow(b, 4<<10)
		a.pending = b
		data := b[len(b)+chunkRoom : cap(b)-chunkRoom]
		n, err := body.Read(data)
		if a.pending == nil { // sent by slowly
			b = b[:0]
		}
		a.pending = nil
		if n == 0 && err != nil && err != io.EOF && len(b) > 0 {
			a.broken = err
			return false
		}
		if n > 0 || err == io.EOF {
			b = a.appendData(b, data[:n], chunked, err == io.EOF)
			if _, err := a.conn.Write(b); err != nil {
				return false
			}
			a.x.written += int64(n)
		}
		if err != nil {
			return err == io.EOF
		}
		if b = b[:0]; body == io.Reader(&a.body) && a.pours() {
			return a.pour()
		}
	}
}

// appendData appends the next bytes of a body.
func (a *directAnswer) appendData(b, data []byte, chunked, last bool) []byte {
	if !chunked {
		return append(b, data...)
	}
	if len(data) > 0 {
		b = strconv.AppendInt(b, int64(len(data)), 16) // before data, if that is where it was read to
		b = append(b, "\r\n"...)
		b = append(b, data...)
		b = append(b, "\r\n"...)
	}
	if !last {
		return b
	}
	trailer := a.body.Trailer
	if a.odd != nil {
		trailer = a.odd.Trailer
	}
	b = append(b, "0\r\n"...)
	b = a.writer.fields(b, trailer)
	return append(b, "\r\n"...)
}

// pourBytes is how much must be left of a body for the kernel to copy it.
const pourBytes = 64 << 10

// pours reports whether the kernel can copy the rest of the body.
func (a *directAnswer) pours() bool {
	return a.tls == nil && a.body.Left() >= pourBytes && a.link.in.Buffered() == 0
}

// pour copies the rest of the body in the kernel.
func (a *directAnswer) pour() bool {
	a.link.hurry() // which a read would do
	p := watchProgress(a.tcp, a.client.stall)
	n, err := a.tcp.ReadFrom(&io.LimitedReader{R: a.link.tcp, N: a.body.Left()})
	p.end()
	a.client.due.Store(0)
	a.body.Skip(n)
	a.x.written += n
	if errors.Is(err, os.ErrDeadlineExceeded) {
		a.client.gate.count(slowReader)
	}
	return err == nil && a.body.Ended()
}
