package router

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"cupola/server/bulkhead"
)

// slowHello is a connection whose first write, the ClientHello, ends only when
// more is closed.
type slowHello struct {
	net.Conn
	begun, more chan struct{}
	said        bool
}

func (c *slowHello) Write(p []byte) (int, error) {
	if c.said {
		return c.Conn.Write(p)
	}
	c.said = true
	n, err := c.Conn.Write(p[:10])
	if err != nil {
		return n, err
	}
	close(c.begun)
	<-c.more
	m, err := c.Conn.Write(p[10:])
	return n + m, err
}

// tellingListener tells of the first connection.
type tellingListener struct {
	net.Listener
	came chan struct{}
}

func (l *tellingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		close(l.came)
	}
	return c, err
}

// shaking gives a server of TLS, and a client that is in the middle of its
// handshake with it.
func shaking(t *testing.T) (srv *http.Server, l net.Listener, served chan error, c *slowHello, shook chan error, client *tls.Conn) {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan struct{})
	l = Guard(&tellingListener{plain, came}, &tls.Config{Certificates: []tls.Certificate{*certOf(t, nil)}}, NewGate(bulkhead.LimitsFor(1024)))
	srv = NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }), slog.New(slog.DiscardHandler), Timeouts{})
	t.Cleanup(func() { srv.Close() })
	served, shook = make(chan error, 1), make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	conn, err := net.Dial("tcp", plain.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c = &slowHello{Conn: conn, begun: make(chan struct{}), more: make(chan struct{})}
	client = tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	go func() { shook <- client.HandshakeContext(context.Background()) }()
	<-c.begun
	<-came
	return srv, l, served, c, shook, client
}

// Who is in the middle of a handshake when the listener is closed is answered,
// and only then accepts no connection any more.
func TestAHandshakeOutlivesTheListener(t *testing.T) {
	_, l, served, c, shook, client := shaking(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-served:
		t.Fatalf("the server ended before the handshake had: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(c.more)
	if err := <-shook; err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("got %v, %v", res, err)
	}
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v; want the listener closed", err)
	}
}

// A shutdown does not wait for handshakes, nor does it fail for them.
func TestAShutdownDropsHandshakes(t *testing.T) {
	srv, l, served, _, _, _ := shaking(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("got %v", err)
	}
}
