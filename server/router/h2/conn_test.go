package h2

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// What breaks a stream off, or is refused, without an end of the connection.
func TestMalformedRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		lines []string
		more  func(p *peer) // nil: the request ends with its head
		want  string        // a status, or the code of RST_STREAM
	}{
		"upper case":                       {get("X-A: b"), nil, "PROTOCOL_ERROR"},
		"a name that is no token":          {get("x a: b"), nil, "PROTOCOL_ERROR"},
		"an empty name":                    {get(": b"), nil, "PROTOCOL_ERROR"},
		"a line end in a value":            {get("x: a\nb"), nil, "PROTOCOL_ERROR"},
		"NUL in a value":                   {get("x: a\x00b"), nil, "PROTOCOL_ERROR"},
		"a pseudo-header after others":     {[]string{":method: GET", ":scheme: http", "x: y", ":path: /"}, nil, "PROTOCOL_ERROR"},
		"an unknown pseudo-header":         {get(":x: y"), nil, "PROTOCOL_ERROR"},
		"a pseudo-header of answers":       {get(":status: 200"), nil, "PROTOCOL_ERROR"},
		"an extended CONNECT":              {[]string{":method: CONNECT", ":protocol: websocket", ":scheme: http", ":path: /", ":authority: app.test"}, nil, "PROTOCOL_ERROR"},
		"CONNECT with a path":              {[]string{":method: CONNECT", ":path: /", ":authority: app.test"}, nil, "PROTOCOL_ERROR"},
		"CONNECT to none":                  {[]string{":method: CONNECT"}, nil, "PROTOCOL_ERROR"},
		"a path twice":                     {get(":path: /"), nil, "PROTOCOL_ERROR"},
		"no method":                        {[]string{":scheme: http", ":path: /"}, nil, "PROTOCOL_ERROR"},
		"a method that is no token":        {[]string{":method: G T", ":scheme: http", ":path: /"}, nil, "PROTOCOL_ERROR"},
		"no scheme":                        {[]string{":method: GET", ":path: /"}, nil, "PROTOCOL_ERROR"},
		"another scheme":                   {[]string{":method: GET", ":scheme: ftp", ":path: /"}, nil, "PROTOCOL_ERROR"},
		"no path":                          {[]string{":method: GET", ":scheme: http"}, nil, "PROTOCOL_ERROR"},
		"an empty path":                    {[]string{":method: GET", ":scheme: http", ":path: "}, nil, "PROTOCOL_ERROR"},
		"a user in the authority":          {[]string{":method: GET", ":scheme: http", ":path: /", ":authority: u@app.test"}, nil, "PROTOCOL_ERROR"},
		"another Host":                     {get("host: other.test"), nil, "400"},
		"two Hosts":                        {[]string{":method: GET", ":scheme: http", ":path: /", "host: a.test", "host: b.test"}, nil, "400"},
		"Connection":                       {get("connection: close"), nil, "400"},
		"Proxy-Connection":                 {get("proxy-connection: close"), nil, "400"},
		"Keep-Alive":                       {get("keep-alive: 5"), nil, "400"},
		"Transfer-Encoding":                {post("transfer-encoding: chunked"), nil, "400"},
		"Upgrade":                          {get("upgrade: websocket"), nil, "400"},
		"another TE":                       {get("te: gzip"), nil, "400"},
		"a large head":                     {get("x: "+strings.Repeat("x", 40<<10), "y: "+strings.Repeat("y", 40<<10)), nil, "431"},
		"many headers":                     {get(repeat("x: ", 3000)...), nil, "431"},
		"a length and no body":             {post("content-length: 3"), nil, "PROTOCOL_ERROR"},
		"two lengths":                      {post("content-length: 0", "content-length: 0"), nil, "PROTOCOL_ERROR"},
		"a length that is no number":       {post("content-length: +3"), data("abc"), "PROTOCOL_ERROR"},
		"more than the length":             {post("content-length: 3"), data("abcd"), "PROTOCOL_ERROR"},
		"less than the length":             {post("content-length: 3"), data("ab"), "PROTOCOL_ERROR"},
		"less than the length, by trailer": {post("content-length: 3"), trailer("ab", true, "x: y"), "PROTOCOL_ERROR"},
		"trailers that are not the end":    {post(), trailer("ab", false, "x: y"), "PROTOCOL_ERROR"},
		"a pseudo-header in trailers":      {post(), trailer("ab", true, ":path: /"), "PROTOCOL_ERROR"},
		"an upper-case trailer":            {post(), trailer("ab", true, "X: y"), "PROTOCOL_ERROR"},
		"a window that overflows":          {post(), func(p *peer) { p.must(p.WriteWindowUpdate(1, 1<<31-1)) }, "FLOW_CONTROL_ERROR"},
		"no more window":                   {post(), func(p *peer) { p.must(p.WriteRawFrame(http2.FrameWindowUpdate, 0, 1, make([]byte, 4))) }, "PROTOCOL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			p := connect(t, echo)
			p.askLong(1, tt.more == nil, tt.lines...)
			if tt.more != nil {
				tt.more(p)
			}
			r, away := p.answer(1)
			if got := r.status + r.reset; got != tt.want || away != "" {
				t.Errorf("got %v, GOAWAY %q; want %s", r, away, tt.want)
			}
			p.answered(3)
		})
	}
}

func repeat(line string, n int) (all []string) {
	for range n {
		all = append(all, line)
	}
	return all
}

func data(text string) func(*peer) {
	return func(p *peer) { p.must(p.WriteData(1, true, []byte(text))) }
}

func trailer(text string, end bool, line string) func(*peer) {
	return func(p *peer) {
		p.must(p.WriteData(1, false, []byte(text)))
		p.ask(1, end, line)
	}
}

// askLong sends a head in as many frames as it needs.
func (p *peer) askLong(id uint32, end bool, lines ...string) {
	p.t.Helper()
	block := p.fields(lines...)
	n := min(len(block), maxFrame)
	p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:n], EndHeaders: n == len(block), EndStream: end}))
	for block = block[n:]; len(block) > 0; block = block[n:] {
		n = min(len(block), maxFrame)
		p.must(p.WriteContinuation(id, n == len(block), block[:n]))
	}
}

// What ends the connection, and with which code.
func TestBrokenConnections(t *testing.T) {
	raw := func(kind http2.FrameType, flags http2.Flags, id uint32, payload ...byte) func(*peer) {
		return func(p *peer) { p.must(p.WriteRawFrame(kind, flags, id, payload)) }
	}
	for name, tt := range map[string]struct {
		send func(p *peer)
		want string
	}{
		"an even stream":              {func(p *peer) { p.ask(2, true, get()...) }, "PROTOCOL_ERROR"},
		"stream 0":                    {func(p *peer) { p.ask(0, true, get()...) }, "PROTOCOL_ERROR"},
		"an old stream":               {func(p *peer) { p.answered(5); p.ask(3, true, get()...) }, "STREAM_CLOSED"},
		"a stream again":              {func(p *peer) { p.answered(5); p.ask(5, true, get()...) }, "STREAM_CLOSED"},
		"data on stream 0":            {raw(http2.FrameData, 0, 0, 1), "PROTOCOL_ERROR"},
		"data on an idle stream":      {raw(http2.FrameData, 0, 1, 1), "PROTOCOL_ERROR"},
		"a reset of an idle stream":   {raw(http2.FrameRSTStream, 0, 1, 0, 0, 0, 0), "PROTOCOL_ERROR"},
		"a short reset":               {raw(http2.FrameRSTStream, 0, 1, 0, 0), "FRAME_SIZE_ERROR"},
		"a window of an idle stream":  {raw(http2.FrameWindowUpdate, 0, 1, 0, 0, 0, 1), "PROTOCOL_ERROR"},
		"no window of an idle stream": {raw(http2.FrameWindowUpdate, 0, 1, 0, 0, 0, 0), "PROTOCOL_ERROR"},
		"no more window":              {raw(http2.FrameWindowUpdate, 0, 0, 0, 0, 0, 0), "PROTOCOL_ERROR"},
		"a short window":              {raw(http2.FrameWindowUpdate, 0, 0, 0, 0, 0), "FRAME_SIZE_ERROR"},
		"a window that overflows":     {raw(http2.FrameWindowUpdate, 0, 0, 0x7f, 0xff, 0xff, 0xff), "FLOW_CONTROL_ERROR"},
		"CONTINUATION of nothing":     {raw(http2.FrameContinuation, http2.FlagContinuationEndHeaders, 1, 0x82), "PROTOCOL_ERROR"},
		"another frame in a head": {func(p *peer) {
			p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}}))
			p.must(p.WritePing(false, [8]byte{}))
		}, "PROTOCOL_ERROR"},
		"another stream in a head": {func(p *peer) {
			p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}}))
			p.ask(3, true, get()...)
		}, "PROTOCOL_ERROR"},
		"an unknown frame in a head": {func(p *peer) {
			p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}}))
			raw(0x77, 0, 1, 1)(p)
		}, "PROTOCOL_ERROR"},
		"a head that is not encoded": {raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "COMPRESSION_ERROR"},
		"half a head":                {raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1, 0x82, 0x40, 0x05, 'a'), "COMPRESSION_ERROR"},
		"trailers that do not decode": {func(p *peer) {
			p.ask(1, false, post()...)
			raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)(p)
		}, "COMPRESSION_ERROR"},
		"a head with too much padding": {raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream|http2.FlagHeadersPadded, 1, 9, 0x82), "PROTOCOL_ERROR"},
		"data with too much padding":   {func(p *peer) { p.ask(1, false, post()...); raw(http2.FrameData, http2.FlagDataPadded, 1, 9, 1)(p) }, "PROTOCOL_ERROR"},
		"a large frame":                {func(p *peer) { p.ask(1, false, post()...); raw(http2.FrameData, 0, 1, make([]byte, maxFrame+1)...)(p) }, "FRAME_SIZE_ERROR"},
		"settings of a stream":         {raw(http2.FrameSettings, 0, 1), "PROTOCOL_ERROR"},
		"settings of an odd length":    {raw(http2.FrameSettings, 0, 0, 1, 2, 3), "FRAME_SIZE_ERROR"},
		"an ack with settings":         {raw(http2.FrameSettings, http2.FlagSettingsAck, 0, 0, 1, 0, 0, 0, 0), "FRAME_SIZE_ERROR"},
		"a push that is 2":             {raw(http2.FrameSettings, 0, 0, 0, 2, 0, 0, 0, 2), "PROTOCOL_ERROR"},
		"a window that is too large":   {raw(http2.FrameSettings, 0, 0, 0, 4, 0x80, 0, 0, 0), "FLOW_CONTROL_ERROR"},
		"frames that are too small":    {raw(http2.FrameSettings, 0, 0, 0, 5, 0, 0, 0, 1), "PROTOCOL_ERROR"},
		"a setting twice":              {raw(http2.FrameSettings, 0, 0, 0, 4, 0, 0, 0, 1, 0, 4, 0, 0, 0, 2), "PROTOCOL_ERROR"},
		"a short ping":                 {raw(http2.FramePing, 0, 0, 1), "FRAME_SIZE_ERROR"},
		"a ping of a stream":           {raw(http2.FramePing, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8), "PROTOCOL_ERROR"},
		"a push":                       {raw(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, 0, 0, 0, 2, 0x82), "PROTOCOL_ERROR"},
		"a priority of stream 0":       {raw(http2.FramePriority, 0, 0, 0, 0, 0, 1, 1), "PROTOCOL_ERROR"},
		"settings that overflow": {func(p *peer) {
			p.ask(1, false, post()...)
			p.must(p.WriteWindowUpdate(1, 1<<30))
			raw(http2.FrameSettings, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff)(p)
		}, "FLOW_CONTROL_ERROR"},
		"more than the window":       {func(p *peer) { sendAll(p, 2<<20) }, "FLOW_CONTROL_ERROR"},
		"a large head in pieces":     {func(p *peer) { endlessHead(p, []byte(strings.Repeat("\x00\x01a\x01b", 1000))) }, "ENHANCE_YOUR_CALM"},
		"an endless head of nothing": {func(p *peer) { endlessHead(p, nil) }, "ENHANCE_YOUR_CALM"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlocker(t)
			serve := b.serve
			if strings.HasPrefix(tt.want, "STREAM_CLOSED") {
				serve = echo
			}
			p := connect(t, serve)
			tt.send(p)
			if got := p.goAway(); got != tt.want {
				t.Errorf("got GOAWAY %q; want %s", got, tt.want)
			}
			b.release()
			<-p.ended
			eventually(t, "the end of all writes", func() bool { return p.busy.Load() == 0 })
		})
	}
}

// sendAll sends a body without regard to windows; nobody reads it.
func sendAll(p *peer, n int) {
	p.ask(1, false, post()...)
	for ; n > 0; n -= maxFrame {
		if p.WriteData(1, false, make([]byte, maxFrame)) != nil {
			return
		}
	}
}

// endlessHead sends a head that does not end.
func endlessHead(p *peer, block []byte) {
	p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}, EndStream: true}))
	for range 100_000 {
		if p.WriteContinuation(1, false, block) != nil {
			return
		}
	}
}

func TestPreface(t *testing.T) {
	p := connectRaw(t, echo)
	_, _ = io.WriteString(p.Conn, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
	if got := p.goAway(); got != "PROTOCOL_ERROR" {
		t.Errorf("HTTP/1.1: got %q", got)
	}
	p = connectRaw(t, echo)
	_, _ = io.WriteString(p.Conn, http2.ClientPreface)
	p.must(p.WritePing(false, [8]byte{}))
	if got := p.goAway(); got != "PROTOCOL_ERROR" {
		t.Errorf("no settings: got %q", got)
	}
	p = connectRaw(t, echo, func(c *Config) { c.Head = 20 * time.Millisecond })
	_, _ = io.WriteString(p.Conn, http2.ClientPreface[:10])
	if got := p.goAway(); got != "closed" {
		t.Errorf("half a preface: got %q", got)
	}
}

// Early bytes come before what is read.
func TestEcho(t *testing.T) {
	p := connect(t, echo)
	p.ask(1, false, post("x-a: b", "cookie: a=1", "cookie: b=2")...)
	p.must(p.WriteData(1, false, []byte("hello")))
	p.must(p.WriteDataPadded(1, false, []byte(" there"), make([]byte, 100)))
	p.ask(1, true, "x-sum: 1")
	r, away := p.answer(1)
	if want := `POST http://app.test/ -1 X-A=b Cookie=a=1 Cookie=b=2 "hello there" X-Sum=1`; r.body != want || r.status != "200" || away != "" {
		t.Errorf("got %v; want %s", r, want)
	}
	if r.header.Get("Date") == "" || r.header.Get("Content-Type") != "text/plain" {
		t.Errorf("got header %v", r.header)
	}
}

// Frames that are unknown or of no interest are passed over.
func TestIgnoredFrames(t *testing.T) {
	p := connect(t, echo)
	p.must(p.WriteRawFrame(0x77, 0xff, 1, []byte("what")))
	p.must(p.WritePriority(9, http2.PriorityParam{StreamDep: 7, Weight: 1}))
	p.must(p.WriteSettings(http2.Setting{ID: 0x99, Val: 1}))
	p.must(p.WriteSettingsAck())
	p.answered(1)
	p.must(p.WriteRSTStream(1, http2.ErrCodeCancel))
	p.must(p.WriteWindowUpdate(1, 5))
	p.answered(3)
	p.must(p.WritePing(false, [8]byte{1, 2}))
	for {
		f, err := p.ReadFrame()
		p.must(err)
		if ping, ok := f.(*http2.PingFrame); ok {
			if !ping.IsAck() || ping.Data != [8]byte{1, 2} {
				t.Errorf("got %v", ping)
			}
			return
		}
	}
}

// Data for a stream that has ended is refused once, and the windows stay whole.
func TestLateData(t *testing.T) {
	p := connect(t, echo)
	p.answered(1)
	for range 200 { // more than the window of the connection
		p.must(p.WriteData(1, false, make([]byte, maxFrame)))
		time.Sleep(100 * time.Microsecond) // for the window to be announced again, which is not read here
	}
	if r, away := p.answer(1); r.reset != "STREAM_CLOSED" || away != "" {
		t.Fatalf("got %v, GOAWAY %q", r, away)
	}
	p.answered(3)
}

// A client gets its answer before it has sent all of its request.
func TestEarlyAnswer(t *testing.T) {
	p := connect(t, func(s *Stream) { _ = s.WriteHead(403, nil, true) })
	p.ask(1, false, post()...)
	r, _ := p.answer(1)
	if r.status != "403" || r.reset != "" {
		t.Fatalf("got %v", r)
	}
	if r, _ := p.answer(1); r.reset != "NO_ERROR" {
		t.Errorf("got %v; want a reset without an error", r)
	}
	p.must(p.WriteData(1, false, []byte("more")))
	p.ask(1, true, "x: y") // was on its way
	p.ask(3, true, get()...)
	if r, away := p.answer(3); r.status != "403" || away != "" {
		t.Errorf("after it: got %v, GOAWAY %q", r, away)
	}
}

// The heads of answers are split where they are larger than a frame.
func TestLargeAnswerHead(t *testing.T) {
	value := strings.Repeat("v", 50_000)
	p := connect(t, func(s *Stream) {
		_ = s.WriteHead(103, http.Header{"Link": {"</a>"}}, false)
		_ = s.WriteHead(200, http.Header{"X-Large": {value}, "Connection": {"close"}, "Upgrade": {"x"}, "Transfer-Encoding": {"chunked"}, "X\nBad": {"1"}, "X-Bad": {"a\nb"}}, false)
		_ = s.WriteData([]byte("body"), false)
		_ = s.WriteTrailer(http.Header{"X-T": {"t"}})
		if err := s.WriteData([]byte("more"), true); err == nil {
			t.Error("an answer goes on after its end")
		}
	})
	p.ask(1, true, get()...)
	r, _ := p.answer(1)
	if r.status != "103200" || r.header.Get("X-Large") != value || r.body != "body" || r.trailer.Get("X-T") != "t" {
		t.Errorf("got %.60v, trailer %v", r, r.trailer)
	}
	if delete(r.header, "Date"); len(r.header) != 1 {
		t.Errorf("got %d headers; want X-Large alone", len(r.header))
	}
}

// The client's table of headers may shrink to nothing.
func TestTableSize(t *testing.T) {
	p := connect(t, echo)
	p.answered(1)
	p.must(p.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0}))
	p.ReadMetaHeaders.SetAllowedMaxDynamicTableSize(0)
	p.must(p.WritePing(false, [8]byte{}))
	p.answered(3)
	p.answered(5)
}
