package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
)

// brokenConn panics in its reads from one on.
type brokenConn struct {
	net.Conn
	reads, from int
}

func (c *brokenConn) Read(p []byte) (int, error) {
	if c.reads++; c.reads >= c.from {
		crash()
	}
	return c.Conn.Read(p)
}

// troubled is a listener that fails, panics, and then gives broken connections.
type troubled struct {
	net.Listener
	accepts atomic.Int32
}

func (l *troubled) Accept() (net.Conn, error) {
	switch l.accepts.Add(1) {
	case 1:
		return nil, &net.OpError{Op: "accept", Err: syscall.ENOBUFS}
	case 2:
		crash()
	}
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Conn("part", &brokenConn{Conn: c, from: 2}), nil
}

// TestServerOutlivesItsConnections wants panics where net/http recovers none: in
// Accept, in its goroutine that reads while a handler runs, and in its hooks.
func TestServerOutlivesItsConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // the read beside the handler has failed
		_, _ = io.WriteString(w, "fine")
	}), ConnState: func(net.Conn, http.ConnState) { crash() }, ConnContext: func(context.Context, net.Conn) context.Context { crash(); return nil }}
	reported := Counts()["part"]
	watched(t, func() {
		Hooks("part", srv)
		served := make(chan error, 1)
		go func() { served <- srv.Serve(Listener("part", &troubled{Listener: inner})) }()
		for range 2 {
			client, err := net.Dial("tcp", inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			answer, err := io.ReadAll(client)
			client.Close()
			if err != nil || !strings.HasSuffix(string(answer), "fine") {
				t.Errorf("got %q, %v; want an answer", answer, err)
			}
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("got %v; want the server closed", err)
		}
	})
	if got := Counts()["part"] - reported; got < 7 { // one of Accept, two of reads, and those of hooks
		t.Errorf("%d panics were reported", got)
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { crash(); return 0, nil }

// TestTransportOutlivesWhatItCalls wants errors for panics in a dial, in a
// connection and in a body, which a Transport calls in goroutines.
func TestTransportOutlivesWhatItCalls(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })}
	go srv.Serve(inner) //nolint:errcheck // it ends with the test
	defer srv.Close()
	plain := (&net.Dialer{}).DialContext
	control := net.Dialer{ControlContext: Control("part", func(context.Context, string, string, syscall.RawConn) error { crash(); return nil })}
	for what, dial := range map[string]DialFunc{
		"dial":    func(context.Context, string, string) (net.Conn, error) { crash(); return nil, nil },
		"control": control.DialContext,
		"read": func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := plain(ctx, network, address)
			return &brokenConn{Conn: c}, err
		},
		"body": plain,
	} {
		all := watched(t, func() {
			client := &http.Client{Transport: &http.Transport{DialContext: Dial("part", dial), DisableKeepAlives: true}}
			var body io.Reader
			if what == "body" {
				body = Body("part", io.NopCloser(brokenBody{}))
			}
			req, err := http.NewRequest("PUT", "http://"+inner.Addr().String(), body)
			if err != nil {
				t.Fatal(err)
			}
			if res, err := client.Do(req); err == nil {
				res.Body.Close()
				t.Errorf("%s: got an answer; want the panic for an error", what)
			} else if p, ok := errors.AsType[*Panic](err); !ok || p.Part != "part" {
				t.Errorf("%s: got %v; want the panic for an error", what, err)
			}
		})
		if len(all) == 0 {
			t.Errorf("%s: no panic was reported", what)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { crash(); return 0, nil }

func TestWriterGivesItsPanic(t *testing.T) {
	watched(t, func() {
		if _, err := Writer("part", brokenWriter{}).Write(nil); err == nil || err.Error() != "panic: broken" {
			t.Errorf("got %v; want the panic", err)
		}
	})
}

// refusing is a listener that fails with each of some errors, and then as a closed one.
type refusing struct {
	net.Listener
	with  []error
	calls int
}

func (l *refusing) Accept() (net.Conn, error) {
	if l.calls++; l.calls > len(l.with) {
		return nil, net.ErrClosed
	}
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", l.with[l.calls-1])}
}

// TestListenerOutlivesAnErrorThatPasses: without files or memory a server waits for some, and does not end with its listener.
func TestListenerOutlivesAnErrorThatPasses(t *testing.T) {
	for _, passes := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EPERM} {
		synctest.Test(t, func(t *testing.T) {
			inner := &refusing{with: []error{passes, passes}}
			if _, err := Listener("part", inner).Accept(); !errors.Is(err, net.ErrClosed) || inner.calls != 3 {
				t.Errorf("%v: got %v after %d calls; want it to accept until the listener is closed", passes, err, inner.calls)
			}
		})
	}
	inner := &refusing{with: []error{syscall.EBADF}}
	if _, err := Listener("part", inner).Accept(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("got %v; want an error that does not pass returned", err)
	}
}
