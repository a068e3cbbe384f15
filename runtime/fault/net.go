package fault

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"
)

// Libraries call our code in their own goroutines, which recover nothing:
// net/http reads and writes connections and bodies in some, and dials in others.
// What they are given goes through the functions of this file.

// Conn is c, with its panics for errors.
func Conn(part string, c net.Conn) net.Conn { return &conn{c, part} }

type conn struct {
	net.Conn
	part string
}

// NetConn is the connection below.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Read is c's.
func (c *conn) Read(p []byte) (n int, err error) {
	defer catch(c.part, &err)
	return c.Conn.Read(p)
}

// Write is c's.
func (c *conn) Write(p []byte) (n int, err error) {
	defer catch(c.part, &err)
	return c.Conn.Write(p)
}

// Close is c's.
func (c *conn) Close() (err error) {
	defer catch(c.part, &err)
	return c.Conn.Close()
}

// SetDeadline is c's.
func (c *conn) SetDeadline(t time.Time) (err error) {
	defer catch(c.part, &err)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline is c's.
func (c *conn) SetReadDeadline(t time.Time) (err error) {
	defer catch(c.part, &err)
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline is c's.
func (c *conn) SetWriteDeadline(t time.Time) (err error) {
	defer catch(c.part, &err)
	return c.Conn.SetWriteDeadline(t)
}

// Listener is l, whose Accept tries again after a panic, and after an error that
// passes: a server that gives up would end with its listener.
func Listener(part string, l net.Listener) net.Listener { return &listener{l, part} }

type listener struct {
	net.Listener
	part string
}

// passing are the errors after which accept(2) asks to try again, and those of a
// machine that is out of files or memory.
var passing = []error{syscall.ENETDOWN, syscall.EPROTO, syscall.ENOPROTOOPT, syscall.EHOSTDOWN, syscall.ENONET, syscall.EHOSTUNREACH, syscall.EOPNOTSUPP,
	syscall.ENETUNREACH, syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM}

// acceptPause is waited before Accept is tried again.
const acceptPause = 50 * time.Millisecond

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.accept()
		_, panicked := errors.AsType[*Panic](err)
		if err == nil || !panicked && !passes(err) {
			return c, err
		}
		<-time.After(acceptPause)
	}
}

func (l *listener) accept() (c net.Conn, err error) {
	defer catch(l.part, &err)
	return l.Listener.Accept()
}

func passes(err error) bool {
	return slices.ContainsFunc(passing, func(one error) bool { return errors.Is(err, one) })
}

// DialFunc is the DialContext of an http.Transport.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Dial is f, with its panics, and those of its connections, for errors.
func Dial(part string, f DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		defer catch(part, &err)
		c, err := f(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return Conn(part, c), nil
	}
}

// ControlFunc is the ControlContext of a net.Dialer.
type ControlFunc = func(ctx context.Context, network, address string, c syscall.RawConn) error

// Control is f, with its panics for errors.
func Control(part string, f ControlFunc) ControlFunc {
	return func(ctx context.Context, network, address string, c syscall.RawConn) (err error) {
		defer catch(part, &err)
		return f(ctx, network, address, c)
	}
}

// Body is b, with its panics for errors.
func Body(part string, b io.ReadCloser) io.ReadCloser { return &body{b, part} }

type body struct {
	io.ReadCloser
	part string
}

// Read is b's.
func (b *body) Read(p []byte) (n int, err error) {
	defer catch(b.part, &err)
	return b.ReadCloser.Read(p)
}

// Close is b's.
func (b *body) Close() (err error) {
	defer catch(b.part, &err)
	return b.ReadCloser.Close()
}

// Writer is w, with its panics for errors.
func Writer(part string, w io.Writer) io.Writer { return &writer{w, part} }

type writer struct {
	io.Writer
	part string
}

// Write is w's.
func (w *writer) Write(p []byte) (n int, err error) {
	defer catch(w.part, &err)
	return w.Writer.Write(p)
}

// Hooks guards what srv calls for each connection. It is called before srv
// serves, and after its hooks are set.
func Hooks(part string, srv *http.Server) {
	if state := srv.ConnState; state != nil {
		srv.ConnState = func(c net.Conn, s http.ConnState) {
			_ = Guard(part, func() error { state(c, s); return nil }) // which is reported
		}
	}
	if with := srv.ConnContext; with != nil {
		srv.ConnContext = func(ctx context.Context, c net.Conn) (its context.Context) {
			defer func() {
				if v := recover(); v != nil {
					_, its = report(part, v), ctx
				}
			}()
			return with(ctx, c)
		}
	}
}
