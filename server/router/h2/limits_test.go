package h2

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// Requests that are reset at once are served no more at a time than others, and not for long
// (CVE-2023-44487).
func TestRapidReset(t *testing.T) {
	b := newBlocker(t)
	p := connect(t, b.serve)
	go func() {
		for id := uint32(1); ; id += 2 {
			if p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x82, 0x86, 0x84, 0x41, 0x01, 'a'}, EndHeaders: true, EndStream: true}) != nil ||
				p.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
				return
			}
		}
	}()
	if got := p.goAway(); got != "ENHANCE_YOUR_CALM" && got != "closed" { // it is reset if it goes on to send
		t.Errorf("got %q", got)
	}
	if most := b.most.Load(); most > maxStreams {
		t.Errorf("served %d requests at a time; want at most %d", most, maxStreams)
	}
}

// A client that resets some of its requests is served on.
func TestResets(t *testing.T) {
	p := connect(t, echo)
	for id := uint32(1); id < 200; id += 2 {
		p.ask(id, false, post()...)
		p.must(p.WriteRSTStream(id, http2.ErrCodeCancel))
	}
	p.answered(201)
}

// More streams than are allowed are refused, and can be tried again.
func TestTooManyStreams(t *testing.T) {
	b := newBlocker(t)
	p := connect(t, b.serve)
	last := uint32(2*maxStreams + 1)
	for id := uint32(1); id <= last; id += 2 {
		p.ask(id, true, get()...)
	}
	if r, away := p.answer(last); r.reset != "REFUSED_STREAM" || away != "" {
		t.Fatalf("got %v, GOAWAY %q", r, away)
	}
	b.release()
	if r, _ := p.answer(last - 2); r.status != "200" {
		t.Errorf("got %v", r)
	}
	eventually(t, "the end of all", func() bool { return b.now.Load() == 0 })
	p.answered(last + 2)
}

// Streams that were reset count until their requests have ended.
func TestResetStreamsCount(t *testing.T) {
	b := newBlocker(t)
	p := connect(t, b.serve)
	for id := uint32(1); id < 2*maxStreams; id += 2 {
		p.ask(id, true, get()...)
	}
	for id := uint32(1); id < 100; id += 2 {
		p.must(p.WriteRSTStream(id, http2.ErrCodeCancel))
	}
	p.ask(2*maxStreams+1, true, get()...)
	if r, away := p.answer(2*maxStreams + 1); r.reset != "REFUSED_STREAM" || away != "" {
		t.Fatalf("got %v, GOAWAY %q", r, away)
	}
}

// Frames that want an answer, or that change nothing, end the connection when there are too many
// (CVE-2019-9512, 9514, 9515, 9518).
func TestFloods(t *testing.T) {
	for name, send := range map[string]func(p *peer) error{
		"pings":             func(p *peer) error { return p.WritePing(false, [8]byte{}) },
		"settings":          func(p *peer) error { return p.WriteSettings() },
		"acks":              func(p *peer) error { return p.WriteSettingsAck() },
		"empty data":        func(p *peer) error { return p.WriteData(1, false, nil) },
		"priorities":        func(p *peer) error { return p.WritePriority(1, http2.PriorityParam{StreamDep: 3}) },
		"unknown frames":    func(p *peer) error { return p.WriteRawFrame(0x77, 0, 0, nil) },
		"windows":           func(p *peer) error { return p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 5}) },
		"bad requests":      func(p *peer) error { return p.WriteRSTStream(1, http2.ErrCodeCancel) },
		"padding":           func(p *peer) error { return p.WriteDataPadded(1, false, nil, make([]byte, 255)) },
		"windows of nought": func(p *peer) error { return p.WriteRawFrame(http2.FrameWindowUpdate, 0, 1, make([]byte, 4)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBlocker(t)
			p := connect(t, b.serve)
			p.ask(1, false, post()...)
			var sent atomic.Int64
			done := make(chan bool)
			go func() {
				defer close(done)
				for sent.Load() < 5_000_000 && send(p) == nil {
					sent.Add(1)
				}
			}()
			select { // what is answered fills the buffers of both sides first
			case <-p.ended:
			case <-time.After(longTime):
				t.Fatalf("the connection goes on after %d frames", sent.Load())
			}
			p.Close()
			<-done
		})
	}
}

// Bodies are taken as fast as they are read, whatever their size, and not more than the window at
// a time.
func TestLargeBodies(t *testing.T) {
	const size = 3 << 20
	sum := make([]byte, size)
	_, _ = rand.Read(sum)
	var most atomic.Int64
	p := connect(t, nil, func(c *Config) {
		c.Serve = func(s *Stream) {
			var all bytes.Buffer
			buffer := make([]byte, 10_000)
			for {
				n, err := s.Read(buffer)
				all.Write(buffer[:n])
				s.conn.mu.Lock()
				most.Store(max(most.Load(), s.body.n))
				s.conn.mu.Unlock()
				if err != nil {
					break
				}
			}
			_ = s.WriteHead(200, nil, false)
			_ = s.WriteData(all.Bytes(), true)
		}
	})
	p.ask(1, false, post()...)
	go func() { // the client reads meanwhile
		window, rest := int64(defaultWindow), sum
		for len(rest) > 0 {
			n := min(int64(len(rest)), maxFrame, streamWindow)
			p.server.mu.Lock()
			s := p.server.streams[1]
			if s != nil {
				window = min(s.credit.left, p.server.credit.left)
			}
			p.server.mu.Unlock()
			if s == nil || window < n {
				time.Sleep(time.Millisecond)
				continue
			}
			if p.WriteData(1, int64(len(rest)) == n, rest[:n]) != nil {
				return
			}
			rest = rest[n:]
			eventually(t, "the arrival", func() bool {
				p.server.mu.Lock()
				defer p.server.mu.Unlock()
				return s.came == int64(size-len(rest)) || s.err != nil
			})
		}
		p.must(p.WriteWindowUpdate(0, size))
		p.must(p.WriteWindowUpdate(1, size))
	}()
	r, away := p.answer(1)
	if r.body != string(sum) || away != "" {
		t.Errorf("got %d bytes, GOAWAY %q; want the same %d", len(r.body), away, size)
	}
	if most.Load() > streamWindow {
		t.Errorf("%d bytes were kept", most.Load())
	}
}

// Answers keep to the windows of stream and connection, also where settings make them negative.
func TestWindows(t *testing.T) {
	p := connectRaw(t, func(s *Stream) {
		_ = s.WriteHead(200, nil, false)
		_ = s.WriteData(bytes.Repeat([]byte("x"), 100), true)
		_ = s.Flush()
	})
	_, _ = io.WriteString(p.Conn, http2.ClientPreface)
	p.must(p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10}))
	next := func() int {
		for {
			f, err := p.ReadFrame()
			p.must(err)
			switch f := f.(type) {
			case *http2.DataFrame:
				return len(f.Data())
			case *http2.PingFrame:
				return -1
			}
		}
	}
	p.ask(1, true, get()...)
	if n := next(); n != 10 {
		t.Fatalf("got %d bytes; want 10", n)
	}
	p.must(p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})) // -10
	p.must(p.WriteWindowUpdate(1, 5))                                                  // -5
	p.must(p.WritePing(false, [8]byte{}))
	if n := next(); n != -1 {
		t.Fatalf("got %d bytes from a window that is closed", n)
	}
	p.must(p.WriteWindowUpdate(1, 6)) // 1
	if n := next(); n != 1 {
		t.Fatalf("got %d bytes; want 1", n)
	}
	p.must(p.WriteWindowUpdate(1, 1000))
	if n := next(); n != 89 {
		t.Fatalf("got %d bytes; want the rest", n)
	}
	p.ask(3, true, get()...)
	p.must(p.WriteRSTStream(3, http2.ErrCodeCancel))
}

// A client that takes nothing of an answer loses it, and it alone.
func TestStalledReader(t *testing.T) {
	failed := make(chan error, 1)
	p := connect(t, func(s *Stream) {
		if s.Path != "/large" {
			echo(s)
			return
		}
		_ = s.WriteHead(200, nil, false)
		failed <- s.WriteData(make([]byte, 1<<20), true)
	}, func(c *Config) { c.Progress = 50 * time.Millisecond })
	p.must(p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}))
	p.ask(1, true, ":method: GET", ":scheme: http", ":path: /large")
	if r, away := p.answer(1); r.reset != "CANCEL" || len(r.body) != 100 || away != "" {
		t.Errorf("got %d bytes, %s, GOAWAY %q", len(r.body), r.reset, away)
	}
	if err := <-failed; err == nil || p.stalled.Load() != 1 {
		t.Errorf("got %v, %d stalled", err, p.stalled.Load())
	}
	p.answered(3)
}

// A head must come whole within its time, however often a little of it comes.
func TestSlowHead(t *testing.T) {
	p := connect(t, echo, func(c *Config) { c.Head = 100 * time.Millisecond })
	p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}, EndStream: true}))
	go func() {
		for p.WriteContinuation(1, false, []byte{0x82}) == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	<-p.ended
	half := connect(t, echo, func(c *Config) { c.Head = 100 * time.Millisecond })
	_, _ = half.Conn.Write([]byte{0, 0, 50, byte(http2.FrameHeaders), 5, 0, 0, 0, 1, 0x82})
	<-half.ended
}

// An idle connection is closed, one that waits for an answer is not.
func TestIdle(t *testing.T) {
	b := newBlocker(t)
	p := connect(t, b.serve, func(c *Config) { c.Idle = 100 * time.Millisecond })
	p.ask(1, true, get()...)
	time.Sleep(300 * time.Millisecond)
	b.release()
	if r, away := p.answer(1); r.status != "200" || away != "" {
		t.Fatalf("got %v, GOAWAY %q", r, away)
	}
	if got := p.goAway(); got != "NO_ERROR" {
		t.Errorf("got %q; want an end without an error", got)
	}
	<-p.ended
}

// Shutdown lets requests end, and no other begin.
func TestShutdown(t *testing.T) {
	b := newBlocker(t)
	ending := make(chan bool, 9)
	p := connect(t, b.serve, func(c *Config) { c.Ending = func() { ending <- true } })
	p.ask(1, false, post()...)
	eventually(t, "the request", func() bool { return b.calls.Load() == 1 })
	p.server.Shutdown()
	p.server.Shutdown()
	for {
		f, err := p.ReadFrame()
		p.must(err)
		if g, ok := f.(*http2.GoAwayFrame); ok {
			if g.LastStreamID != 1 || g.ErrCode != http2.ErrCodeNo {
				t.Errorf("got %v", g)
			}
			break
		}
	}
	p.ask(3, false, post()...) // was on its way
	p.must(p.WriteData(3, true, []byte("ignored")))
	p.must(p.WriteData(1, true, []byte("taken")))
	b.release()
	r, away := p.answer(1)
	if r.status != "200" || !strings.Contains(r.body, "taken") || away != "" {
		t.Errorf("got %v, GOAWAY %q", r, away)
	}
	if got := p.goAway(); got != "closed" {
		t.Errorf("got another %q", got)
	}
	<-p.ended
	<-ending
	if n := b.calls.Load(); n != 1 {
		t.Errorf("%d requests were served", n)
	}
	p = connect(t, echo)
	p.server.Shutdown() // of an idle one
	if got := p.goAway(); got != "NO_ERROR" {
		t.Errorf("idle: got %q", got)
	}
}

// A client that sends GOAWAY gets its answers.
func TestClientLeaves(t *testing.T) {
	b := newBlocker(t)
	p := connect(t, b.serve)
	p.ask(1, true, get()...)
	p.must(p.WriteGoAway(0, http2.ErrCodeNo, nil))
	b.release()
	if r, _ := p.answer(1); r.status != "200" {
		t.Errorf("got %v", r)
	}
	<-p.ended
}

// The end of a connection, and a reset, are noticed by those who read, write and wait.
func TestGone(t *testing.T) {
	type end struct {
		read, write error
		gone        bool
	}
	for name, leave := range map[string]func(p *peer){
		"reset":  func(p *peer) { p.must(p.WriteRSTStream(1, http2.ErrCodeCancel)) },
		"closed": func(p *peer) { p.Close() },
		"error":  func(p *peer) { p.must(p.WriteRawFrame(http2.FrameData, 0, 0, nil)) },
	} {
		ends := make(chan end, 1)
		begun := make(chan bool)
		p := connect(t, func(s *Stream) {
			gone := make(chan bool)
			s.OnGone(func() { close(gone) })
			close(begun)
			var e end
			_, e.read = io.ReadAll(s)
			<-gone
			e.write = s.WriteHead(200, nil, true)
			e.gone = s.OnGone(nil)
			ends <- e
		})
		p.ask(1, false, post()...)
		<-begun
		leave(p)
		if e := <-ends; e.read == nil || e.write == nil || !e.gone {
			t.Errorf("%s: got %+v", name, e)
		}
	}
}

// A body that was reset is never taken for a whole one.
func TestResetAfterTheEnd(t *testing.T) {
	got := make(chan error, 1)
	reset := make(chan bool)
	p := connect(t, func(s *Stream) {
		if s.Path == "/" {
			<-reset
			_, err := io.ReadAll(s)
			got <- err
			return
		}
		close(reset)
	})
	p.ask(1, false, post()...)
	p.must(p.WriteData(1, true, []byte("all of it")))
	p.must(p.WriteRSTStream(1, http2.ErrCodeCancel))
	p.ask(3, true, ":method: GET", ":scheme: http", ":path: /next")
	if err := <-got; err == nil {
		t.Error("the body ended well")
	}
}

// A panic breaks its stream off, and nothing else.
func TestPanic(t *testing.T) {
	p := connect(t, func(s *Stream) {
		if s.Path != "/" {
			panic("broken")
		}
		echo(s)
	})
	p.ask(1, true, ":method: GET", ":scheme: http", ":path: /panic")
	if r, away := p.answer(1); r.reset != "INTERNAL_ERROR" || away != "" {
		t.Errorf("got %v, GOAWAY %q", r, away)
	}
	p.answered(3)
}

// Small bodies are waited for; what does not come in time, or is followed by trailers, is there to be
// read.
func TestSmall(t *testing.T) {
	p := connect(t, func(s *Stream) {
		b, ok := s.Small(nil, map[bool]time.Duration{true: longTime, false: time.Millisecond}[s.Path == "/"])
		rest, _ := io.ReadAll(s)
		h := http.Header{"X-Small": {string(b)}, "X-Rest": {string(rest)}}
		if ok {
			h.Set("X-Ok", "yes")
		}
		_ = s.WriteHead(200, h, true)
	})
	p.ask(1, false, post()...)
	p.must(p.WriteData(1, false, []byte("he")))
	p.must(p.WriteData(1, true, []byte("llo")))
	if r, _ := p.answer(1); r.header.Get("X-Small") != "hello" || r.header.Get("X-Ok") != "yes" {
		t.Errorf("got %v", r.header)
	}
	p.ask(3, false, post()...)
	p.must(p.WriteData(3, false, []byte("hello")))
	p.ask(3, true, "x: y")
	if r, _ := p.answer(3); r.header.Get("X-Rest") != "hello" || r.header.Get("X-Ok") != "" {
		t.Errorf("trailers: got %v", r.header)
	}
	p.ask(5, false, ":method: POST", ":scheme: http", ":path: /slow")
	time.Sleep(50 * time.Millisecond)
	p.must(p.WriteData(5, true, []byte("hello")))
	if r, _ := p.answer(5); r.header.Get("X-Rest") != "hello" || r.header.Get("X-Ok") != "" {
		t.Errorf("late: got %v", r.header)
	}
}
