package router

import (
	"container/list"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"cupola/runtime/fault"
	"cupola/server/bulkhead"
)

// client is the connection of a client, below TLS. It bounds how long a client
// may take to read, and lets one finish that sends more than is read.
type client struct {
	net.Conn
	gate    *Gate
	address netip.Prefix
	stall   time.Duration // how long a write may make no progress

	// These are guarded by gate.mu.
	stranger *bulkhead.Stranger // while no request has come
	crowd    *crowd             // that it counts in; nil for none
	busy     int                // requests under way; several of HTTP/2
	idle     *list.Element      // in the crowd, while it is not busy
	gone     bool               // closed, or being closed

	unread   atomic.Bool  // more of a request's body may come than was read
	expiring atomic.Bool  // what is read now is only to be done with
	cut      atomic.Bool  // nothing more is read
	due      atomic.Int64 // the deadline of writes that Write has set; Unix nanoseconds, 0 for none
	until    atomic.Int64 // a deadline of writes that was asked for; Unix nanoseconds, 0 for none
}

func newClient(conn net.Conn, g *Gate) *client {
	return &client{Conn: newQuickConn(conn), gate: g, address: bulkhead.Address(conn.RemoteAddr()), stall: defaultProgress}
}

// Read reads what the client sends.
func (c *client) Read(p []byte) (int, error) {
	if c.cut.Load() {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if c.expiring.Load() {
		c.cut.Store(true)
		return n, io.EOF
	}
	if n = readNow(c.Conn, p); n > 0 {
		return n, nil
	}
	return n, err
}

// Write fails once the client takes nothing for a while. It may take little.
func (c *client) Write(p []byte) (n int, err error) {
	for {
		own, err := c.limitWrite(time.Now())
		if err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[n:])
		n += m
		if err == nil || !own || !errors.Is(err, os.ErrDeadlineExceeded) || c.until.Load() != 0 {
			return n, err
		}
		c.due.Store(0)
		if m == 0 {
			c.gate.count(slowReader)
			return n, err
		}
	}
}

// limitWrite sets the deadline of a write, and reports whether it is the client's own
// limit. One that was set for a write just before is as good.
func (c *client) limitWrite(now time.Time) (own bool, err error) {
	if until := c.until.Load(); until != 0 && until < now.Add(c.stall).UnixNano() {
		c.due.Store(0)
		return false, c.Conn.SetWriteDeadline(time.Unix(0, until))
	}
	if due := c.due.Load(); due != 0 && due-now.UnixNano() > int64(c.stall-c.stall/8) {
		return true, nil
	}
	deadline := now.Add(c.stall)
	c.due.Store(deadline.UnixNano())
	return true, c.Conn.SetWriteDeadline(deadline)
}

// SetWriteDeadline sets a deadline that holds beside the one of Write.
func (c *client) SetWriteDeadline(t time.Time) error {
	c.until.Store(0)
	c.due.Store(0)
	if !t.IsZero() {
		c.until.Store(t.UnixNano())
	}
	return c.Conn.SetWriteDeadline(t)
}

// SetReadDeadline is called only by net/http's server. The server also uses it
// to interrupt its own background read; such a deadline does not expire the
// connection.
func (c *client) SetReadDeadline(t time.Time) error {
	c.expiring.Store(false)
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline sets deadlines of reads and writes.
func (c *client) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// How long a client is listened to that was answered before it had sent all: a
// connection that is closed on unread bytes is reset, and the client may never
// see its answer (nginx's lingering_timeout and lingering_time).
const (
	lingerIdle = 5 * time.Second
	lingerAll  = 30 * time.Second
)

// Close closes the connection, at once or once the client has had the answer.
func (c *client) Close() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if ok && c.unread.CompareAndSwap(true, false) && half.CloseWrite() == nil {
		fault.Go("router", c.linger)
		return nil
	}
	return c.shut()
}

func (c *client) linger() {
	defer c.close()
	last := time.Now().Add(lingerAll)
	buffer := make([]byte, 16<<10)
	for now := time.Now(); now.Before(last); now = time.Now() {
		if err := c.Conn.SetReadDeadline(now.Add(min(lingerIdle, last.Sub(now)))); err != nil {
			return
		}
		if _, err := c.Conn.Read(buffer); err != nil {
			return
		}
	}
}

// close closes the connection at once.
func (c *client) close() { _ = c.shut() } // of a client that is not wanted any more

func (c *client) shut() error {
	c.gate.forget(c)
	return c.Conn.Close()
}

// begin prepares for the next request.
func (c *client) begin() {
	c.unread.Store(false)
	c.expiring.Store(false)
}

// abandon bounds the time for the rest of a request's body.
func (c *client) abandon() {
	c.unread.Store(true)
	c.expiring.Store(true)
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerIdle)) // of a connection that is closed nothing is read
}

// under finds the client below the layers of a connection.
func under(conn net.Conn) *client {
	switch c := conn.(type) {
	case *client:
		return c
	case *guard:
		return under(c.Conn)
	case interface{ NetConn() net.Conn }: // TLS, for one
		return under(c.NetConn())
	}
	return nil
}
