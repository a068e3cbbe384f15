package router

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"cupola/server/bulkhead"
)

// panicConn is a connection below the router's that panics when the client sends
// an X. Beside a handler, net/http reads in a goroutine that recovers nothing.
type panicConn struct{ net.Conn }

func (c panicConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if strings.HasPrefix(string(p[:n]), "X") {
		panic("broken")
	}
	return n, err
}

// brokenListener accepts connections with a fault.
type brokenListener struct {
	net.Listener
	broken func(net.Conn) net.Conn
}

func (l brokenListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.broken(c), nil
}

// TestPanicOfAConnectionEndsItAlone has what lies below the router's connections
// panic.
func TestPanicOfAConnectionEndsItAlone(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	guarded := Guard(brokenListener{inner, func(c net.Conn) net.Conn { return panicConn{c} }}, nil, NewGate(bulkhead.Limits{Strangers: 10, API: 10, Apps: 10, Backends: 10}))
	handling := make(chan struct{})
	srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handling <- struct{}{}
		<-r.Context().Done() // the read beside this has failed
		_, _ = io.WriteString(w, "fine")
	}), slog.New(slog.DiscardHandler), Timeouts{})
	defer srv.Close()
	go srv.Serve(guarded) //nolint:errcheck // it ends with the test
	for range 3 {
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		<-handling
		_, _ = io.WriteString(client, "X")
		answer, err := io.ReadAll(client)
		client.Close()
		if err != nil || !strings.HasSuffix(string(answer), "fine") {
			t.Errorf("got %q, %v; want an answer", answer, err)
		}
	}
}

// scarceListener has no file for a connection for some times.
type scarceListener struct {
	net.Listener
	left atomic.Int32
}

func (l *scarceListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, os.NewSyscallError("accept4", syscall.EMFILE)
	}
	return l.Listener.Accept()
}

// TestListenersOutliveALackOfFiles asks on each kind of listener after accept(2) has
// failed several times.
func TestListenersOutliveALackOfFiles(t *testing.T) {
	secure := httptest.NewUnstartedServer(nil)
	secure.StartTLS() // for its certificate
	defer secure.Close()
	for name, c := range map[string]*tls.Config{"plain": nil, "TLS": secure.TLS} {
		t.Run(name, func(t *testing.T) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			scarce := &scarceListener{Listener: inner}
			scarce.left.Store(3)
			s := &site{Router: New(Config{Log: slog.New(slog.DiscardHandler)})}
			srv := NewServer(http.NotFoundHandler(), s.config.Log, Timeouts{})
			defer srv.Close()
			go srv.Serve(s.Ahead(Guard(scarce, c, s.config.Gate), Direct{})) //nolint:errcheck // it ends with the test
			client, scheme := secure.Client(), "https"
			if c == nil {
				client, scheme = http.DefaultClient, "http"
			}
			for range 2 {
				resp, err := client.Get(scheme + "://" + inner.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusNotFound {
					t.Errorf("status %d", resp.StatusCode)
				}
				client.CloseIdleConnections()
				scarce.left.Store(2)
			}
		})
	}
}

// scarceConn has no memory for what it reads, once the client has sent an X.
type scarceConn struct{ net.Conn }

func (c scarceConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if strings.HasPrefix(string(p[:n]), "X") {
		return 0, os.NewSyscallError("recvfrom", syscall.ENOBUFS)
	}
	return n, err
}

// TestAConnectionEndsWithAFailedRead reads nothing more from a connection of which a read
// failed beside a handler: net/http would give each later request an ended context.
func TestAConnectionEndsWithAFailedRead(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handling := make(chan struct{})
	srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handling <- struct{}{}
		<-r.Context().Done()
		_, _ = io.WriteString(w, "fine")
	}), slog.New(slog.DiscardHandler), Timeouts{})
	defer srv.Close()
	go srv.Serve(Guard(brokenListener{inner, func(c net.Conn) net.Conn { return scarceConn{c} }}, nil, NewGate(bulkhead.Limits{Strangers: 10, API: 10, Apps: 10, Backends: 10}))) //nolint:errcheck // it ends with the test
	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-handling
	_, _ = io.WriteString(client, "X")
	if answer, err := io.ReadAll(client); err != nil || !strings.HasSuffix(string(answer), "\r\n\r\nfine") {
		t.Errorf("got %q, %v; want the answer, and the end", answer, err)
	}
}
