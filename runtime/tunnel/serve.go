package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"cupola/runtime/fault"
)

// Serve makes the connections that a Client asks for over a stream, until it ends.
func Serve(over io.ReadWriteCloser) error {
	l := &once{accepted: make(chan net.Conn, 1), closed: make(chan struct{})}
	conn := &stream{ReadWriteCloser: over}
	conn.ended = func(error) {
		close(l.closed)
		_ = over.Close()
	}
	l.accepted <- conn
	s := &http.Server{Handler: fault.Handler("tunnel", http.HandlerFunc(connect)), Protocols: protocols(), ReadHeaderTimeout: dialTime,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: windowBytes, MaxReceiveBufferPerStream: maxAhead, SendPingTimeout: pingAfter, PingTimeout: pingTime}}
	if err := s.Serve(l); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// once is a listener that has one connection, and ends with it.
type once struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (l *once) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *once) Close() error   { return nil }
func (l *once) Addr() net.Addr { return address{} }

// reachable refuses addresses that no pod has: loopback and link-local ones. Cloud metadata services, which hand out credentials, are link-local.
func reachable(text string) error {
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return err
	}
	if ip := a.Addr().Unmap(); !ip.IsGlobalUnicast() {
		return errors.New("it is not the address of a pod")
	}
	return nil
}

// check is reachable, but in tests, whose servers are on the loopback.
var check = reachable

// connect makes a connection, and carries what comes from either side. What breaks off on one side breaks off on the other.
func connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is supported", http.StatusMethodNotAllowed)
		return
	}
	if err := check(r.Host); err != nil {
		http.Error(w, "connect to "+r.Host+": "+err.Error(), http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer conn.Close()
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return
	}
	tcp, _ := conn.(*net.TCPConn) // of "tcp"
	fault.Go("tunnel", func() { up(tcp, r.Body) })
	buffer := make([]byte, 32<<10)
	for {
		n, err := conn.Read(buffer)
		if n > 0 {
			if _, writeErr := w.Write(buffer[:n]); writeErr != nil || out.Flush() != nil {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			panic(http.ErrAbortHandler) // the client's connection is reset
		}
	}
}

// stuckTime is how long a pod may read nothing. What is sent to it meanwhile takes up the window that all connections share.
const stuckTime = time.Minute

// up carries what the client sends.
func up(to *net.TCPConn, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			_ = to.SetWriteDeadline(time.Now().Add(stuckTime))
			if _, writeErr := to.Write(buffer[:n]); writeErr != nil {
				_ = to.Close() // which ends connect
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = to.CloseWrite()
			return
		case err != nil:
			_ = to.SetLinger(0)
			_ = to.Close()
			return
		}
	}
}
