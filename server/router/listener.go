package router

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"cupola/runtime/fault"
)

// Guard gives a listener whose connections refuse ambiguous requests and count
// in the budgets of g, for a server made by NewServer. With a TLS configuration it speaks TLS, offering
// HTTP/2; nil is plain TCP. Closing it closes l, but Accept fails only once
// those have come whose handshake was under way; to close it again drops them.
//
// An error of accept(2) that passes, as when there are no more files, ends neither.
func Guard(l net.Listener, c *tls.Config, g *Gate) net.Listener {
	l = &politeListener{fault.Listener("router", l), g}
	if c == nil {
		return &plainListener{l, g}
	}
	c = c.Clone()
	c.NextProtos = []string{"h2", "http/1.1"}
	t := &tlsListener{Listener: l, config: c, gate: g, ready: make(chan net.Conn), closed: make(chan struct{})}
	t.live, t.drop = context.WithCancel(context.Background())
	accept := fault.Loop(t.live, "router", func(context.Context) error { t.accept(); return nil })
	fault.Go("router", func() { _ = accept() })
	return t
}

type plainListener struct {
	net.Listener
	gate *Gate
}

// Accept waits for the next connection.
func (l *plainListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return fault.Conn("router", &guard{Conn: l.gate.admit(conn)}), nil
}

// politeListener accepts a connection once all else that can run has had its turn.
// Hundreds that come at once would all be ahead of other requests.
type politeListener struct {
	net.Listener
	gate *Gate
}

// While others run and requests of the API are under way, each connection comes after
// a rest: a goroutine that waits for a processor which computes something long gets
// another one only when that has nothing else to do.
const (
	othersRan  = 50 * time.Microsecond
	acceptRest = 200 * time.Microsecond
)

// Accept waits for the next connection.
func (l *politeListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	began := time.Now()
	runtime.Gosched()
	if time.Since(began) > othersRan && l.gate.apiClients.Used() > 0 {
		<-time.After(acceptRest)
	}
	return conn, err
}

// tlsGuard is a guard on what TLS carries. net/http asks it for the state.
type tlsGuard struct {
	net.Conn // a guard
	tls      *tls.Conn
}

// NetConn is the connection below.
func (g *tlsGuard) NetConn() net.Conn { return g.Conn }

// ConnectionState is that of the TLS connection.
func (g *tlsGuard) ConnectionState() tls.ConnectionState { return g.tls.ConnectionState() }

// tlsListener does the handshakes itself, because only they report whether a
// connection is HTTP/1 and to be guarded, or HTTP/2, for which net/http wants
// the *tls.Conn.
type tlsListener struct {
	net.Listener
	config *tls.Config
	gate   *Gate
	ready  chan net.Conn
	hands  sync.WaitGroup // being shaken; only accept adds to it

	closed chan struct{} // closed by accept, when it has ended and no handshake is under way
	err    error         // of accept; read after closed

	closing atomic.Bool
	live    context.Context // of handshakes; the second Close ends it, by drop
	drop    func()
}

func (l *tlsListener) accept() {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			l.hands.Wait()
			l.err = err
			close(l.closed)
			return
		}
		l.hands.Go(fault.Func("router", func() { l.handshake(fault.Conn("router", l.gate.admit(conn))) }))
	}
}

// handshakeTimeout bounds TLS handshakes, against slow clients and a server
// that does not accept.
const handshakeTimeout = 10 * time.Second

func (l *tlsListener) handshake(conn net.Conn) {
	secure := tls.Server(conn, l.config)
	ctx, cancel := context.WithTimeout(l.live, handshakeTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		explain(err)
		conn.Close()
		return
	}
	var ready net.Conn = secure
	if secure.ConnectionState().NegotiatedProtocol != "h2" {
		ready = &tlsGuard{fault.Conn("router", &guard{Conn: secure}), secure}
	}
	select {
	case l.ready <- ready:
	case <-ctx.Done():
		conn.Close()
	}
}

// explain answers a client that speaks HTTP where TLS is meant.
func explain(err error) {
	var record tls.RecordHeaderError
	if errors.As(err, &record) && record.Conn != nil && looksLikeHTTP(record.RecordHeader) {
		// Ignore an error: the connection is closed anyway.
		_ = record.Conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(record.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
	}
}

func looksLikeHTTP(begin [5]byte) bool {
	switch string(begin[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "PATCH", "DELET":
		return true
	}
	return false
}

// Accept waits for the next connection whose handshake is done.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.ready:
		return conn, nil
	case <-l.closed:
		return nil, l.err
	}
}

// Close takes no more connections. The second time it drops those whose
// handshake is under way.
func (l *tlsListener) Close() error {
	if l.closing.CompareAndSwap(false, true) {
		return l.Listener.Close()
	}
	l.drop()
	return nil
}
