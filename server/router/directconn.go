package router

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"cupola/server/router/wire"
)

// directConn is a connection of a client whose plain requests are forwarded
// directly, one after the other, by one goroutine. All that a request needs is kept
// for the next one.
type directConn struct {
	ahead  *aheadListener
	handed net.Conn // what net/http gets
	guard  *guard   // of handed; nil for HTTP/2
	conn   net.Conn // below the guard
	client *client  // below TLS
	tcp    *net.TCPConn
	tls    *tls.ConnectionState // nil: without TLS
	ctx    context.Context
	in     *bufio.Reader
	state  atomic.Int32
	fresh  bool      // no request has come
	until  time.Time // deadline of reads

	host     string // of the request before
	reserved bool   // host is

	headLen int
	skipped int // line ends after the request before
	answer  directAnswer
	call
}

// The states of a directConn.
const (
	isNew int32 = iota // no request has come
	isIdle
	isBusy
	isEnded // closed by the listener
)

// clientBytes is the size of the buffer that requests are read through. A head that
// is larger is net/http's.
const clientBytes = 8 << 10

// maxPieces is in how many pieces a head may come.
const maxPieces = 16

func newDirectConn(a *aheadListener, conn net.Conn) *directConn {
	c := &directConn{ahead: a, handed: conn, client: under(conn), fresh: true}
	c.router = a.router
	c.ctx = context.WithValue(context.Background(), clientKey{}, c.client)
	guard, secure := guardOf(conn)
	if guard == nil || c.client == nil || tcpOf(c.client) == nil {
		return c
	}
	c.guard, c.conn, c.tcp = guard, guard.Conn, tcpOf(c.client)
	if secure != nil {
		state := secure.ConnectionState()
		c.tls = &state
	}
	c.client.stall = c.router.config.Timeouts.Progress
	c.in = bufio.NewReaderSize(c.conn, clientBytes)
	c.answer = directAnswer{directConn: c}
	c.call.init(&c.answer, http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: conn.RemoteAddr().String(), TLS: c.tls})
	return c
}

// serve serves requests until one comes that is not plain, or none.
func (c *directConn) serve() {
	defer c.known()
	if conn, ok := c.handed.(*tls.Conn); ok && c.multiplexes() {
		c.serveMulti(conn, nil)
		return
	}
	if c.guard == nil {
		c.ahead.handOver(c.handed)
		return
	}
	c.ahead.track(c)
	defer c.ahead.untrack(c)
	over := true
	defer func() { // also after a panic
		if over {
			c.conn.Close()
		}
	}()
	c.setDeadline(time.Now().Add(c.router.config.Timeouts.RequestHeader))
	for {
		switch c.next() {
		case wire.Partial: // there is no more
			return
		case wire.Odd:
			over = false
			if c.hasPreface() && c.multiplexes() {
				c.leaveForMulti()
			} else {
				c.leave()
			}
			return
		}
		if !c.serveRequest() || !c.rest() {
			return
		}
	}
}

// leave hands the connection over.
func (c *directConn) leave() {
	c.guard.early, _ = c.in.Peek(c.in.Buffered()) // has no error for what is buffered
	c.setDeadline(time.Time{})
	c.ahead.untrack(c) // Close is net/http's matter now
	c.ahead.handOver(c.handed)
}

// known notes that a new connection has said what it wants, or is none any more.
func (c *directConn) known() {
	if c.fresh {
		c.fresh = false
		c.ahead.new.Done()
	}
}

// next waits for the head of a request that can be forwarded directly: then it is
// Plain. It is Odd where net/http has to go on, and Partial where the client has
// gone or is too slow.
func (c *directConn) next() wire.Verdict {
	for pieces := 0; ; pieces++ {
		c.skipLineEnds()
		have, _ := c.in.Peek(c.in.Buffered()) // has no error for what is buffered
		if len(have) > 0 {
			n, v := c.head.Parse(have)
			switch {
			case v == wire.Plain && c.isDirect(n):
				c.headLen = n
				return wire.Plain
			case v != wire.Partial || len(have) == c.in.Size() || pieces > maxPieces:
				return wire.Odd
			case pieces <= 1:
				c.setDeadline(time.Now().Add(c.router.config.Timeouts.RequestHeader))
			}
		}
		if _, err := c.in.Peek(len(have) + 1); err != nil {
			return wire.Partial
		}
	}
}

// skipLineEnds skips what old clients send after the body of a POST (net/http skips
// as many).
func (c *directConn) skipLineEnds() {
	if c.head.Method != http.MethodPost {
		return
	}
	have, _ := c.in.Peek(min(c.in.Buffered(), 4-c.skipped))
	n := len(have) - len(bytes.TrimLeft(have, "\r\n"))
	_, _ = c.in.Discard(n) // is buffered
	if c.skipped += n; n < len(have) {
		c.head.Method = "" // the next request has begun
	}
}

// isDirect reports whether a plain request, whose head has n bytes, can be forwarded
// directly: it is for an app that is reached in plain HTTP/1.1, or for none, and its
// body comes with it.
func (c *directConn) isDirect(n int) bool {
	if c.host != c.head.Host {
		c.host, c.reserved = c.head.Host, c.ahead.Reserved != nil && c.ahead.Reserved(c.head.Host)
	}
	if c.reserved {
		return false
	}
	return c.ahead.isDirect(c.host, c.head.Target) && c.bodyComes(n)
}

// patient lets a request wait until its client goes.
func (c *directConn) patient() (context.Context, func()) {
	ctx, cancel := context.WithCancel(c.ctx)
	w := watchClient(c, cancel)
	return ctx, func() {
		if w != nil {
			w.stop()
		}
		cancel()
	}
}

// bodyTime is how long the rest of a small body may take to come.
const bodyTime = 10 * time.Millisecond

// bodyComes waits for the rest of a body that has room in the buffer; many clients send
// it after the head. It reports whether the body has come.
func (c *directConn) bodyComes(n int) bool {
	if c.head.Length > int64(c.in.Size()-n) {
		return false
	}
	whole := n + int(c.head.Length)
	if whole <= c.in.Buffered() {
		return true
	}
	c.setDeadline(time.Now().Add(bodyTime))
	_, err := c.in.Peek(whole)
	return err == nil
}

// rest ends the request and reports whether another may follow.
func (c *directConn) rest() bool {
	c.state.Store(isIdle)
	if c.ahead.closing.Load() && c.state.CompareAndSwap(isIdle, isBusy) {
		return false
	}
	idle := c.router.config.Timeouts.ClientIdle
	if left := c.until.Sub(c.x.ended); left < idle-idle/8 || left > idle { // else that of a request just before is as good
		c.setDeadline(c.x.ended.Add(idle))
	}
	return true
}

func (c *directConn) setDeadline(t time.Time) {
	c.until = t
	_ = c.conn.SetReadDeadline(t) // fails if the connection is closed, as reads do then
}

// serveRequest forwards the request and its answer. It reports whether the
// connection can have another.
func (c *directConn) serveRequest() bool {
	if !c.state.CompareAndSwap(isIdle, isBusy) && !c.state.CompareAndSwap(isNew, isBusy) {
		return false
	}
	c.known()
	c.content, _ = c.in.Peek(c.headLen + int(c.head.Length)) // is buffered
	c.content = c.content[c.headLen:]
	c.begin(c.ctx, c.ahead.Shard)
	x := &c.x
	c.router.requests.enter()
	defer c.router.requests.leave()
	defer x.finish()
	if !x.enter() || !x.admit() || !x.takeSlot() || !x.rouse(c.patient) {
		return c.refuse()
	}
	c.prepare()
	if err := x.attempt(c.send); err != nil {
		x.failed(err)
		return c.refuse()
	}
	return c.answer.forward()
}

// ends reports whether the connection has no request after this one.
func (c *directConn) ends() bool {
	return c.head.Close || c.router.draining.Load() || c.ahead.closing.Load()
}

// refuse sends the refusal, unless the client is gone.
func (c *directConn) refuse() bool {
	r := &c.refusal
	if r.status == statusClientGone {
		return false
	}
	c.discard()
	buffer := c.router.forward.buffers.Get()
	defer c.router.forward.buffers.Put(buffer)
	closes := r.header.Get("Connection") == "close"
	b := c.writer.response(buffer[:0], r.status, r.header)
	b = appendField(b, "Content-Length", strconv.Itoa(len(r.body)))
	if c.ends() && !closes {
		b = append(b, "Connection: close\r\n"...)
		closes = true
	}
	b = append(b, "\r\n"...)
	if c.head.Method != http.MethodHead {
		b = append(b, r.body...)
	}
	_, err := c.conn.Write(b)
	return err == nil && !closes
}

// discard drops the request from the buffer.
func (c *directConn) discard() {
	_, _ = c.in.Discard(c.headLen + int(c.head.Length)) // is buffered
	c.headLen, c.head.Length, c.skipped = 0, 0, 0
}
