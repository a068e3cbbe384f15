package router

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"cupola/runtime/fault"
)

// upgradeValue is the Connection of a request that wants to switch protocols; it is never
// changed.
var upgradeValue = []string{"Upgrade"}

// upgradeOf is the protocol that a head names to switch to; "" for none.
func upgradeOf(h http.Header) string {
	for _, value := range h["Connection"] {
		for token := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.Trim(token, " \t"), "Upgrade") {
				return h.Get("Upgrade")
			}
		}
	}
	return ""
}

// switches reports whether an answer switches to the protocol that the client has asked
// for.
func (c *call) switches(status int, h http.Header) bool {
	return status == http.StatusSwitchingProtocols && c.head.Upgrade != "" && strings.EqualFold(upgradeOf(h), c.head.Upgrade)
}

// tunnel answers 101, and copies what comes from either side until both have ended. A
// side that ends properly leaves the other way open: that of the endpoint for as long as it
// likes, that of the client for the time of Progress. One that breaks off breaks the other.
func (a *directAnswer) tunnel(h http.Header) {
	if a.gone() {
		return
	}
	a.link.setDeadline(time.Time{})
	a.setDeadline(time.Time{})
	if !a.sendSwitch(h) {
		return
	}
	done := make(chan struct{})
	fault.Go("router", func() {
		defer close(done)
		a.way(a.toClient, a.endClient)
	})
	a.way(a.toEndpoint, a.link.tcp.CloseWrite)
	<-done
}

// sendSwitch sends the head of a 101, and what has come after it.
func (a *directAnswer) sendSwitch(h http.Header) bool {
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Trailer"} { // there is no body
		delete(h, name)
	}
	buffer := a.router.forward.buffers.Get()
	defer a.router.forward.buffers.Put(buffer)
	b := a.writer.fields(a.writer.status(buffer[:0], http.StatusSwitchingProtocols), h)
	b = append(b, "\r\n"...)
	early, _ := a.link.in.Peek(a.link.in.Buffered()) // has no error for what is buffered
	b = append(b, early...)
	a.link.end()
	_, err := a.conn.Write(b)
	return err == nil
}

// way copies one way, and ends the other side as this one has ended.
func (a *directAnswer) way(pass, end func() error) {
	ended := false
	defer func() { // also after a panic
		if !ended {
			_ = a.link.conn.Close() // both are done with
			a.client.close()
		}
	}()
	ended = pass() == io.EOF && end() == nil
}

// toClient passes on what the endpoint sends. It returns io.EOF when that has ended.
func (a *directAnswer) toClient() error {
	return newTaker(a.link.quick, a.router.forward.buffers).pass(a.conn)
}

// endClient tells the client that the endpoint has ended.
func (a *directAnswer) endClient() error {
	_ = a.tcp.SetReadDeadline(time.Now().Add(a.router.config.Timeouts.Progress)) // fails if it is closed, as reads do then
	if half, ok := a.conn.(interface{ CloseWrite() error }); ok {                // TLS
		return half.CloseWrite()
	}
	return a.tcp.CloseWrite()
}

// toEndpoint passes on what the client sends, likewise.
func (a *directAnswer) toEndpoint() error {
	quick, ok := a.client.Conn.(*quickConn)
	for a.in.Buffered() > 0 || a.tls != nil || !ok {
		if _, err := a.in.Peek(1); err != nil {
			return err
		}
		b, _ := a.in.Peek(a.in.Buffered()) // has no error for what is buffered
		if _, err := a.link.quick.Write(b); err != nil {
			return err
		}
		_, _ = a.in.Discard(len(b)) // is buffered
	}
	a.in = nil // there may be very many idle connections
	return newTaker(quick, a.router.forward.buffers).pass(a.link.quick)
}

// taker reads from a connection on which little comes: it has a buffer only while there is
// something to be read.
type taker struct {
	conn    *quickConn
	raw     syscall.RawConn
	buffers *bufferPool
	buffer  []byte
	call    quickCall
	try     func(fd uintptr) bool // t.attempt
	err     error                 // of raw
}

func newTaker(conn *quickConn, buffers *bufferPool) *taker {
	t := &taker{conn: conn, buffers: buffers}
	t.raw, t.err = conn.SyscallConn()
	t.try = t.attempt
	return t
}

// pass writes all that comes, until an error, which is io.EOF at the end. After each message it
// reads once more, and mostly in vain: an end that came with the message is not announced again.
func (t *taker) pass(to io.Writer) error {
	for t.err == nil {
		if t.err = t.next(); t.err == nil {
			_, t.err = to.Write(t.buffer[:t.call.n])
		}
		if t.buffer != nil {
			t.buffers.Put(t.buffer)
			t.buffer = nil
		}
	}
	return t.err
}

// next waits until something has come, and reads it.
func (t *taker) next() error {
	err := t.raw.Read(t.try)
	switch {
	case err != nil:
		return err
	case t.call.errno != 0:
		return t.conn.failed("read", t.call.errno)
	case t.call.n == 0:
		return io.EOF
	}
	return nil
}

// attempt reads what has come; false if nothing has.
func (t *taker) attempt(fd uintptr) bool {
	t.buffer = t.buffers.Get()
	t.call.p, t.call.n, t.call.errno = t.buffer, 0, 0
	if t.call.read(fd) {
		return true
	}
	t.buffers.Put(t.buffer)
	t.buffer, t.call.p = nil, nil
	return false
}
