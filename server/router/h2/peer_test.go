package h2

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"cupola/test/loopback"
)

// peer is a client that sends frame by frame.
type peer struct {
	*http2.Framer
	net.Conn
	t       *testing.T
	server  *Conn
	ended   chan struct{} // the server has closed the connection
	encoder *hpack.Encoder
	block   bytes.Buffer
	busy    atomic.Int64 // Busy without Quiet
	stalled atomic.Int64
}

// longTime is not reached but by a server that hangs.
const longTime = 20 * time.Second

// connect gives a peer that has sent its preface, and its settings.
func connect(t *testing.T, serve func(*Stream), change ...func(*Config)) *peer {
	t.Helper()
	p := connectRaw(t, serve, change...)
	_, _ = io.WriteString(p.Conn, http2.ClientPreface)
	p.must(p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}))
	p.must(p.WriteWindowUpdate(0, 1<<20))
	return p
}

func connectRaw(t *testing.T, serve func(*Stream), change ...func(*Config)) *peer {
	t.Helper()
	p := &peer{t: t, ended: make(chan struct{})}
	c := &Config{
		Serve: serve, Busy: func() { p.busy.Add(1) }, Quiet: func() { p.busy.Add(-1) }, Ending: func() {}, Stalled: func() { p.stalled.Add(1) },
		Head: longTime, Idle: longTime, Progress: longTime, MaxHeader: 64 << 10,
	}
	for _, f := range change {
		f(c)
	}
	made := make(chan bool)
	addr := loopback.Serve(t, func(conn net.Conn) {
		p.server = New(conn, nil, c)
		close(made)
		p.server.Run()
		close(p.ended)
	})
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(longTime))
	<-made
	p.Conn, p.Framer = conn, http2.NewFramer(conn, conn)
	p.AllowIllegalWrites = true
	p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.encoder = hpack.NewEncoder(&p.block)
	return p
}

func (p *peer) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// fields encodes "name: value" lines.
func (p *peer) fields(lines ...string) []byte {
	p.block.Reset()
	for _, line := range lines {
		i := strings.LastIndex(line, ": ")
		p.must(p.encoder.WriteField(hpack.HeaderField{Name: line[:i], Value: line[i+2:]}))
	}
	return bytes.Clone(p.block.Bytes())
}

// get are the pseudo-headers of a request, and more lines.
func get(more ...string) []string {
	return append([]string{":method: GET", ":scheme: http", ":authority: app.test", ":path: /"}, more...)
}

func post(more ...string) []string {
	return append([]string{":method: POST", ":scheme: http", ":authority: app.test", ":path: /"}, more...)
}

// ask sends a head.
func (p *peer) ask(id uint32, end bool, lines ...string) {
	p.t.Helper()
	p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.fields(lines...), EndHeaders: true, EndStream: end}))
}

// reply is what came on a stream.
type reply struct {
	status  string
	header  http.Header
	body    string
	trailer http.Header
	reset   string // the code of RST_STREAM
}

func (r reply) String() string { return fmt.Sprintf("%s %q %s", r.status, r.body, r.reset) }

// answer reads up to the end of a stream, or of the connection, whose code it returns.
func (p *peer) answer(id uint32) (r reply, goAway string) {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			if goAway == "" {
				goAway = "closed"
			}
			if n, ok := err.(net.Error); ok && n.Timeout() {
				p.t.Fatalf("nothing came on stream %d after %v", id, r)
			}
			return r, goAway
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			goAway = g.ErrCode.String()
		}
		if f.Header().StreamID == id && r.take(f) {
			return r, goAway
		}
	}
}

// take reports whether the frame is the last.
func (r *reply) take(f http2.Frame) bool {
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		h := http.Header{}
		for _, field := range f.RegularFields() {
			h.Add(field.Name, field.Value)
		}
		if status := f.PseudoValue("status"); status != "" {
			r.status += status
			r.header = h
		} else {
			r.trailer = h
		}
		return f.StreamEnded()
	case *http2.DataFrame:
		r.body += string(f.Data())
		return f.StreamEnded()
	case *http2.RSTStreamFrame:
		r.reset = f.ErrCode.String()
		return true
	}
	return false
}

// goAway reads up to the end of the connection, and returns the code that it ended with.
func (p *peer) goAway() string {
	_, code := p.answer(1 << 30)
	return code
}

// answered sends a request, and fails if it is not answered.
func (p *peer) answered(id uint32) {
	p.t.Helper()
	p.ask(id, true, get()...)
	if r, away := p.answer(id); r.status != "200" {
		p.t.Errorf("stream %d: got %v, GOAWAY %q; want 200", id, r, away)
	}
}

// echo answers with the request and its body.
func echo(s *Stream) {
	body, err := io.ReadAll(s)
	if err != nil {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s://%s%s %d", s.Method, s.Scheme, s.Host, s.Path, s.Length)
	for _, f := range s.Fields {
		fmt.Fprintf(&text, " %s=%s", f.Key, f.Value)
	}
	fmt.Fprintf(&text, " %q", body)
	for _, f := range s.Trailer() {
		fmt.Fprintf(&text, " %s=%s", f.Key, f.Value)
	}
	_ = s.WriteHead(200, http.Header{"Content-Type": {"text/plain"}}, false)
	_ = s.WriteData([]byte(text.String()), true)
}

// blocker answers requests once it is released.
type blocker struct {
	free  chan struct{}
	calls atomic.Int64
	most  atomic.Int64
	now   atomic.Int64
	once  sync.Once
}

func newBlocker(t *testing.T) *blocker {
	b := &blocker{free: make(chan struct{})}
	t.Cleanup(b.release)
	return b
}

func (b *blocker) release() { b.once.Do(func() { close(b.free) }) }

func (b *blocker) serve(s *Stream) {
	b.calls.Add(1)
	now := b.now.Add(1)
	for most := b.most.Load(); now > most && !b.most.CompareAndSwap(most, now); most = b.most.Load() {
	}
	defer b.now.Add(-1)
	<-b.free
	echo(s)
}

// eventually waits for something.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(longTime); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}
