package router

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"
)

// directAnswer is how a directConn takes the answer of an endpoint.
type directAnswer struct {
	*directConn
	pending []byte // of the answer: not sent yet
	broken  error  // the endpoint failed before anything of the answer was sent
	watch   *watch // of the client; nil until the endpoint takes its time
}

// inform passes a 1xx answer on.
func (a *directAnswer) inform(status int, h http.Header) error {
	b := a.writer.fields(a.writer.status(nil, status), h)
	_, err := a.conn.Write(append(b, "\r\n"...))
	return err
}

// slowly is called when the endpoint does not answer at once. It sends what there is
// of the answer, and watches whether the client goes.
func (a *directAnswer) slowly() {
	a.link.setDeadline(a.answerTime())
	tcp := a.link.tcp
	a.watch = watchClient(a.directConn, func() { _ = tcp.SetReadDeadline(time.Now()) }) // fails if it is closed, as reads do then
	if len(a.pending) > 0 {
		_ = a.flush() // fails again with the next bytes
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

// heed ends reads from the endpoint again if the client had gone before the answer began, which
// has lifted their deadline.
func (a *directAnswer) heed() {
	if a.watch != nil && a.watch.gone.Load() {
		_ = a.link.tcp.SetReadDeadline(time.Now()) // fails if it is closed, as reads do then
	}
}

// forward sends the answer to the client. It reports whether the connection can
// have another request.
func (a *directAnswer) forward() bool {
	a.discard()
	a.broken = nil
	defer func() { // also after a panic
		if a.link != nil {
			a.drop()
		}
	}()
	status, length, h := a.answered()
	a.heed()
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
	if a.last() {
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
	a.resetRefusal()
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
	a.announce(h)
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
