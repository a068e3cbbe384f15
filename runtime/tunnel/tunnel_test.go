package tunnel

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// bed is a client, and the ends of the streams that it opened.
type bed struct {
	client *Client
	mu     sync.Mutex
	ends   []net.Conn
	fails  error
	said   []string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	check = func(string) error { return nil }
	t.Cleanup(func() { check = reachable })
	b := &bed{}
	say := func(s string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.said = append(b.said, s)
	}
	b.client = &Client{Up: func() { say("up") }, Down: func(error) { say("down") }, Open: func(context.Context) (io.ReadWriteCloser, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.fails != nil {
			return nil, b.fails
		}
		ours, theirs := net.Pipe()
		b.ends = append(b.ends, theirs)
		go func() { _ = Serve(theirs) }()
		return ours, nil
	}}
	t.Cleanup(func() {
		b.client.Close()
		b.cut()
	})
	return b
}

// cut ends all streams.
func (b *bed) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.ends {
		_ = c.Close()
	}
	b.ends = nil
}

func (b *bed) http() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return b.client.Dial(ctx, address)
	}}}
}

// TestTunnel has bodies of both directions come whole, of many requests at once, over one stream.
func TestTunnel(t *testing.T) {
	b := newBed(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	sent := make([]byte, 1<<20)
	_, _ = rand.Read(sent)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			res, err := b.http().Post(server.URL, "", bytes.NewReader(sent))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("got %d bytes, %v; want the %d that were sent", len(got), err, len(sent))
			}
		})
	}
	all.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ends) != 1 {
		t.Errorf("%d streams were opened; want 1", len(b.ends))
	}
}

// echo says back what it is told when that has ended.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				text, err := io.ReadAll(c)
				if err == nil {
					_, _ = c.Write(text)
				}
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// TestHalfClosed has the end of what is sent come before the answer.
func TestHalfClosed(t *testing.T) {
	b := newBed(t)
	c, err := b.client.Dial(t.Context(), echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "hello")
	_ = c.CloseWrite()
	if text, err := io.ReadAll(c); string(text) != "hello" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestCut resets connections when the stream ends, and the next one opens another stream.
func TestCut(t *testing.T) {
	b := newBed(t)
	at := echo(t)
	c, err := b.client.Dial(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	b.cut()
	if _, err := io.ReadAll(c); err == nil {
		t.Error("a connection that was cut ended like one that was closed")
	}
	_ = c.Close()
	again, err := b.client.Dial(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := strings.Join(b.said, " "); got != "up down up" {
		t.Errorf("said: %s", got)
	}
}

// TestRefused tells who does not listen from a tunnel that is not there.
func TestRefused(t *testing.T) {
	b := newBed(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if _, err := b.client.Dial(t.Context(), l.Addr().String()); err == nil || errors.Is(err, ErrDown) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
	check = reachable
	for _, at := range []string{"127.0.0.1:80", "169.254.169.254:80", "[::1]:80", "example.com:80"} {
		if _, err := b.client.Dial(t.Context(), at); err == nil || errors.Is(err, ErrDown) {
			t.Errorf("connected to %s: %v", at, err)
		}
	}
	b.client.Close()
	b.mu.Lock()
	b.fails = errors.New("no pod")
	b.mu.Unlock()
	if _, err := b.client.Dial(t.Context(), echo(t)); !errors.Is(err, ErrDown) || !strings.Contains(err.Error(), "no pod") {
		t.Errorf("got %v", err)
	}
	within, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := b.client.Dial(within, echo(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
