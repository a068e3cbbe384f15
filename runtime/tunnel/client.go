package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"cupola/runtime/fault"
)

// ErrDown is why a connection could not be made: the tunnel is not open.
var ErrDown = errors.New("there is no tunnel")

// Client connects through a tunnel, which it opens when it is needed, and again when it ended.
type Client struct {
	// Open opens the stream to the end that serves. It is called again after it failed with growing waits.
	Open func(context.Context) (io.ReadWriteCloser, error)
	// Up is called when the tunnel is open, and Down with the error when it ended, or could not be opened.
	Up   func()
	Down func(error)

	mu      sync.Mutex
	conn    *http.ClientConn
	attempt *attempt // that is under way; nil of none
	wait    time.Duration
}

// attempt is one to open the tunnel.
type attempt struct {
	done chan struct{} // closed when it has ended
	err  error         // after done
}

// Waits between attempts to open a tunnel, and how long one may take.
const (
	firstWait = 200 * time.Millisecond
	maxWait   = 5 * time.Second
	openTime  = 20 * time.Second
)

// Dial connects to an address, as TCP from the other end. The error is ErrDown where it is the tunnel that fails.
func (c *Client) Dial(ctx context.Context, address string) (*net.TCPConn, error) {
	conn, err := c.connection(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDown, err)
	}
	live, end := context.WithCancel(context.WithoutCancel(ctx))
	body, up := io.Pipe()
	req, err := http.NewRequestWithContext(live, http.MethodConnect, "http://tunnel", fault.Body("tunnel", body))
	if err != nil {
		end()
		return nil, err
	}
	req.Host = address
	late := context.AfterFunc(ctx, end)
	res, err := conn.RoundTrip(req)
	if !late() && err == nil {
		_ = res.Body.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		if conn.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrDown, err)
		}
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		_ = res.Body.Close()
		end()
		return nil, errors.New(strings.TrimSpace(string(text)))
	}
	near, far, err := pair(ctx)
	if err != nil {
		_ = res.Body.Close()
		end()
		return nil, err
	}
	fault.Go("tunnel", func() { carryUp(far, up) })
	fault.Go("tunnel", func() { carryDown(far, res.Body, end) })
	return near, nil
}

// carryUp copies what the caller writes into the tunnel. After the other end has closed the connection it reads on for a while, and
// discards that: the kernel resets a connection that is closed with unread data, and the caller could lose the end of the answer.
func carryUp(from *net.TCPConn, to *io.PipeWriter) {
	_, err := io.Copy(to, from)
	if errors.Is(err, io.ErrClosedPipe) {
		_ = from.SetReadDeadline(time.Now().Add(maxWait))
		_, _ = io.Copy(io.Discard, from)
		_ = from.Close()
	}
	_ = to.CloseWithError(err) // io.EOF of nil
}

// carryDown copies what comes out of the tunnel to the caller, and ends the connection as the other end did: by a close, or by a reset.
func carryDown(to *net.TCPConn, from io.ReadCloser, end func()) {
	defer end()
	_, err := io.Copy(to, from)
	_ = from.Close()
	if err == nil {
		_ = to.CloseWrite()
		return
	}
	_ = to.SetLinger(0)
	_ = to.Close()
}

// Connect opens the tunnel if it is not open.
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.connection(ctx)
	return err
}

// connection is that of the tunnel, once it is open.
func (c *Client) connection(ctx context.Context) (*http.ClientConn, error) {
	c.mu.Lock()
	if c.conn != nil && c.conn.Err() == nil {
		defer c.mu.Unlock()
		return c.conn, nil
	}
	if c.attempt == nil {
		c.attempt = &attempt{done: make(chan struct{})}
		c.begin(c.attempt, c.wait)
	}
	a := c.attempt
	c.mu.Unlock()
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if a.err != nil {
		return nil, a.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return nil, errors.New("it ended at once")
	}
	return c.conn, nil
}

// begin opens the tunnel, after a while.
func (c *Client) begin(a *attempt, after time.Duration) {
	fault.Go("tunnel", func() {
		<-time.After(after)
		var conn *http.ClientConn
		err := fault.Guard("tunnel", func() (err error) {
			conn, err = c.open()
			return err
		})
		c.mu.Lock()
		c.attempt, c.wait = nil, 0
		if err != nil {
			c.wait = min(max(2*after, firstWait), maxWait)
		} else {
			c.conn = conn
		}
		c.mu.Unlock()
		a.err = err
		close(a.done)
		if err != nil {
			c.Down(err)
		}
	})
}

func (c *Client) open() (*http.ClientConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	over, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &stream{ReadWriteCloser: over}
	opened := make(chan struct{})
	s.ended = func(err error) {
		fault.Go("tunnel", func() {
			_ = over.Close()
			<-opened
			c.Down(err)
		})
	}
	transport := &http.Transport{Protocols: protocols(), DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return fault.Conn("tunnel", s), nil },
		HTTP2:       &http.HTTP2Config{MaxReceiveBufferPerStream: maxAhead * 4, SendPingTimeout: pingAfter, PingTimeout: pingTime}}
	conn, err := transport.NewClientConn(ctx, "http", "tunnel:80")
	if err == nil {
		c.Up()
	}
	close(opened)
	return conn, err
}

// Close ends the tunnel that is open; the next Dial opens another one.
func (c *Client) Close() {
	c.mu.Lock()
	conn := c.conn
	c.conn = nil
	c.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

// pair connects this process to itself over the loopback, since callers need a *net.TCPConn.
func pair(ctx context.Context) (near, far *net.TCPConn, err error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	near, _ = conn.(*net.TCPConn) // of "tcp"
	_ = l.SetDeadline(time.Now().Add(dialTime))
	for {
		if far, err = l.AcceptTCP(); err != nil {
			return nil, nil, errors.Join(err, near.Close())
		}
		if far.RemoteAddr().String() == near.LocalAddr().String() { // else another process guessed the port
			return near, far, nil
		}
		_ = far.Close()
	}
}
