package router

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"cupola/runtime/fault"
)

// defaultProgress is how long a client may send nothing of a body, or take
// nothing of an answer: nginx's client_body_timeout and send_timeout. gorouter
// waits for as long as the connection lasts.
const defaultProgress = time.Minute

// progressing bounds how long a request's body makes no progress. What comes
// slowly, and what an app is slow to take, is no matter.
func progressing(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c := clientOf(req.Context())
		if c != nil && req.ProtoMajor == 1 {
			c.begin()
		}
		if req.Body == nil || req.Body == http.NoBody {
			next.ServeHTTP(w, req)
			return
		}
		body := &progressBody{ReadCloser: req.Body, rc: http.NewResponseController(w), limit: limit}
		if req.ProtoMajor == 1 {
			body.client = c
		}
		defer body.finish()
		with := *req // only in the copy: the server inspects its own request's body
		with.Body = body
		next.ServeHTTP(w, &with)
	})
}

// progressBody is the body of a request. A timer ends a read that takes too
// long; a deadline would end what the server reads after the body, too.
type progressBody struct {
	io.ReadCloser
	rc     *http.ResponseController
	limit  time.Duration
	client *client // of HTTP/1; nil else

	mu      sync.Mutex
	timer   *time.Timer // made by the first read
	reading bool
	stalled bool // a read took too long: there are no more
	free    bool // the limit does not hold
	over    bool // the request is: its connection may serve another
	ends    bool // all of it was read
}

// Read reads on, as long as the client goes on.
func (b *progressBody) Read(p []byte) (int, error) {
	b.begin()
	n, err := b.ReadCloser.Read(p)
	return n, b.end(err)
}

func (b *progressBody) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = true
	switch {
	case b.over || b.free:
	case b.timer == nil:
		b.timer = time.AfterFunc(b.limit, fault.Func("router", b.stall))
	default:
		b.timer.Reset(b.limit)
	}
}

func (b *progressBody) end(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	if b.timer != nil {
		b.timer.Stop()
	}
	b.ends = b.ends || err == io.EOF
	if err != nil && b.stalled {
		return os.ErrDeadlineExceeded
	}
	return err
}

// stall ends the read that is under way.
func (b *progressBody) stall() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.reading || b.over || b.free {
		return
	}
	b.stalled = true
	if b.client != nil {
		b.client.gate.count(slowBody)
		b.client.unread.Store(true)
		b.client.cut.Store(true) // the start of the next request is unknown
	}
	_ = b.rc.SetReadDeadline(time.Now()) // servers that know none are those of tests
}

// lift ends the limit: an app that has begun to answer may well wait for the
// client to say more, as streams of gRPC do.
func (b *progressBody) lift() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = true
}

// hasStalled reports whether the client sent nothing for too long.
func (b *progressBody) hasStalled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stalled
}

func (b *progressBody) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.timer != nil {
		b.timer.Stop()
	}
	if b.client != nil && !b.ends && !b.stalled {
		b.client.abandon()
	}
}

// withClient makes a request's connection findable.
func withClient(limit time.Duration) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, conn net.Conn) context.Context {
		c := under(conn)
		if c == nil {
			return ctx
		}
		c.stall = limit
		return context.WithValue(ctx, clientKey{}, c)
	}
}
