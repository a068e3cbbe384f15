package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/server/bulkhead"
	"cupola/test/loopback"
)

// gated is a server with an API at api.test and apps, within the budgets of a
// process with few files.
type gated struct {
	*site
	gate *Gate
}

func newGated(t *testing.T, files uint64, times Timeouts) *gated {
	t.Helper()
	s := &site{}
	g := &gated{s, NewGate(bulkhead.LimitsFor(files))}
	s.Router = New(Config{Log: slog.New(slog.DiscardHandler), Gate: g.gate, Timeouts: times, AccessLog: func(e AccessEntry) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, string(e.Line))
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	server := NewServer(http.HandlerFunc(g.serve), s.config.Log, times)
	go server.Serve(ahead(s.Router, Guard(l, nil, g.gate), Direct{Reserved: func(host string) bool { return host == "api.test" }}))
	t.Cleanup(func() { server.Close() })
	return g
}

func (g *gated) serve(w http.ResponseWriter, r *http.Request) {
	if r.Host != "api.test" {
		g.ServeHTTP(w, r)
		return
	}
	done, ok := g.gate.EnterAPI(r)
	if !ok {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer done()
	switch r.URL.Path {
	case "/refuse":
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		fmt.Fprint(w, "too large")
	case "/read":
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	default:
		fmt.Fprint(w, "api")
	}
}

// dial gives a connection on which a text was sent.
func (g *gated) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_, _ = io.WriteString(c, text) // it may be refused by now
	return c
}

// says gives the first line of what comes, "" for none.
func says(c net.Conn) string {
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s never came", what)
		}
	}
}

// used is what is used of a budget.
func (g *gated) used(name string) (n, limit int) {
	for _, u := range g.gate.Stats().Uses {
		if u.Name == name {
			return u.Used, u.Limit
		}
	}
	return -1, -1
}

// alive checks that the API and another app answer, on new connections.
func (g *gated) alive(t *testing.T) {
	t.Helper()
	for _, url := range []string{"api.test/", "other.test/"} {
		if got := g.get(t, url, "Connection", "close"); got.status != http.StatusOK {
			t.Errorf("%s: got %d %s", url, got.status, got.body)
		}
	}
	for _, name := range []string{"new", "api", "apps", "backends"} {
		if n, limit := g.used(name); n > limit {
			t.Errorf("%s: %d of %d are used", name, n, limit)
		}
	}
}

// two are routes to an app that a test attacks, and to another.
func (g *gated) two(t *testing.T, handler http.HandlerFunc) {
	other := app(t, "other", 0, nil)
	other.AppGUID = otherApp
	g.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, handler)), {Host: "other.test", AppGUID: otherApp, Endpoints: []Endpoint{other}}}})
}

const dribble = "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 100000\r\n\r\nx"

// Clients that send their bodies byte for byte get at most half of what there is.
func TestDribblersLeaveRoom(t *testing.T) {
	g := newGated(t, 800, Timeouts{})
	g.two(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	var refused, held sync.WaitGroup
	var mu sync.Mutex
	status := map[string]int{}
	for range 1200 {
		c := g.dial(t, dribble)
		refused.Add(1)
		held.Go(func() {
			line := says(c)
			mu.Lock()
			defer mu.Unlock()
			status[line]++
			refused.Done()
		})
	}
	limit := bulkhead.LimitsFor(800).Backends
	eventually(t, "the refusals", func() bool {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, m := range status {
			n += m
		}
		return n >= 1200-limit/2-1
	})
	g.alive(t)
	if n, _ := g.used("app_requests"); n == 0 || n > limit/2+1 {
		t.Errorf("the attacked app has %d of %d", n, limit)
	}
	mu.Lock()
	defer mu.Unlock()
	if status["HTTP/1.1 503 Service Unavailable"] == 0 || g.gate.Stats().Refused["app"] == 0 {
		t.Errorf("got %v, refused %v", status, g.gate.Stats().Refused)
	}
}

// The words of a refusal are gorouter's.
func TestFullRouterSaysSo(t *testing.T) {
	g := newGated(t, 64, Timeouts{})
	half := (bulkhead.LimitsFor(64).Backends + 1) / 2
	release := make(chan struct{})
	g.two(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	for range half {
		g.dial(t, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
	}
	eventually(t, "the requests", func() bool { n, _ := g.used("app_requests"); return n == half })
	got := g.get(t, "app.test/")
	want := "503 Service Unavailable: Requested route ('app.test') has reached the connection limit."
	if got.status != http.StatusServiceUnavailable || got.header.Get("X-Cf-Routererror") != "Connection Limit Reached" || got.body != want {
		t.Errorf("got %+v", got)
	}
	eventually(t, "the log", func() bool { return len(g.lines()) == 1 })
	g.alive(t)
	if lines := g.lines(); !strings.Contains(lines[0], ` 503 `) || !strings.Contains(lines[0], `x_cf_routererror:"Connection Limit Reached"`) {
		t.Errorf("the log says %q", lines)
	}
}

func TestIdleConnectionsMakeRoom(t *testing.T) {
	g := newGated(t, 400, Timeouts{})
	g.two(t, nil)
	for range 300 { // beyond all budgets
		c := g.dial(t, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
		if line := says(c); line != "HTTP/1.1 200 OK" {
			t.Fatalf("got %q", line)
		}
	}
	g.alive(t)
	if g.gate.Stats().Refused["idle"] < 200 {
		t.Errorf("got %v", g.gate.Stats().Refused)
	}
}

func TestSlowHeadersAreBounded(t *testing.T) {
	g := newGated(t, 400, Timeouts{})
	g.two(t, nil)
	for range 300 {
		g.dial(t, "GET / HTTP/1.1\r\nHost: app.test\r\nX-Slow: ")
	}
	eventually(t, "the connections", func() bool { return g.gate.Stats().Refused["no_request"] >= 250 })
	g.alive(t)
}

func TestWebsocketsCountForTheirLife(t *testing.T) {
	g := newGated(t, 400, Timeouts{})
	g.two(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
	var open []net.Conn
	for {
		c := g.dial(t, "GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		if line := says(c); line != "HTTP/1.1 101 Switching Protocols" {
			if line != "HTTP/1.1 503 Service Unavailable" {
				t.Errorf("got %q", line)
			}
			break
		}
		open = append(open, c)
	}
	if limit := bulkhead.LimitsFor(400).Backends; len(open) != limit/2 {
		t.Errorf("%d of %d were let in", len(open), limit)
	}
	g.alive(t)
	for _, c := range open {
		c.Close()
	}
	eventually(t, "the end of the websockets", func() bool { n, _ := g.used("app_requests"); return n == 0 })
	if line := says(g.dial(t, "GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")); line != "HTTP/1.1 101 Switching Protocols" {
		t.Errorf("got %q", line)
	}
}

func TestConnectionsToInstancesAreBounded(t *testing.T) {
	g := newGated(t, 200, Timeouts{})
	var table Table
	for n := range 60 {
		table.Routes = append(table.Routes, route(fmt.Sprintf("app%d.test", n), app(t, "app", n, nil)))
	}
	g.Set(table)
	for n := range 60 {
		if got := g.get(t, fmt.Sprintf("app%d.test/", n)); got.status != http.StatusOK {
			t.Fatalf("got %d %s", got.status, got.body)
		}
		if n, limit := g.used("backends"); n > limit {
			t.Fatalf("%d of %d connections to instances are open", n, limit)
		}
	}
}

// A connection of the API is not lost in a flood to apps, nor the other way round.
func TestFloodOfTheAPI(t *testing.T) {
	g := newGated(t, 400, Timeouts{})
	g.two(t, nil)
	const slow = "POST /read HTTP/1.1\r\nHost: api.test\r\nContent-Length: 100000\r\n\r\nx"
	share := 0
	used := func() int { n, _ := g.used("api_requests"); return n }
	for refused := false; !refused; share = used() { // one by one: a connection that has not been read yet makes room for the next
		g.dial(t, slow)
		eventually(t, "the answer", func() bool {
			refused = g.gate.Stats().Refused["address"] == 1
			return refused || used() > share
		})
	}
	if limit := bulkhead.LimitsFor(400).API; share < limit/2 || share > limit*3/4+1 {
		t.Errorf("one address has %d of %d", share, limit)
	}
	for range 300 {
		g.dial(t, slow)
	}
	eventually(t, "the refusals", func() bool {
		refused := g.gate.Stats().Refused
		return refused["address"]+refused["no_request"]+refused["connections"] > 300
	})
	if got := g.get(t, "other.test/"); got.status != http.StatusOK {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if n := used(); n != share {
		t.Errorf("one address has %d, not %d", n, share)
	}
}

// quick are time-outs that a test can wait for.
var quick = Timeouts{Progress: 500 * time.Millisecond}

func TestBodyWithoutProgress(t *testing.T) {
	g := newGated(t, 1024, quick)
	g.two(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	c := g.dial(t, dribble)
	if line := says(c); line != "HTTP/1.1 408 Request Timeout" {
		t.Errorf("got %q", line)
	}
	eventually(t, "the log", func() bool { return len(g.lines()) == 1 })
	if line := g.lines()[0]; !strings.Contains(line, ` 408 1 `) || !strings.Contains(line, `x_cf_routererror:"request_timeout"`) {
		t.Errorf("the log says %s", line)
	}
	if g.gate.Stats().Refused["slow_body"] != 1 {
		t.Errorf("got %v", g.gate.Stats().Refused)
	}
	if n, err := c.Write([]byte("GET /smuggled HTTP/1.1\r\nHost: other.test\r\n\r\n")); err == nil && n > 0 {
		_, _ = io.Copy(io.Discard, c)
	}
	if lines := g.lines(); len(lines) != 1 {
		t.Errorf("the rest of a body was taken for a request: %q", lines)
	}
}

// What takes long is not cut off: a slow upload, a slow app, a slow stream, a
// silent websocket.
func TestSlowIsNoStall(t *testing.T) {
	g := newGated(t, 1024, quick)
	g.two(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			_, _ = io.Copy(conn, conn)
			return
		}
		n, err := io.Copy(io.Discard, r.Body)
		for range 2 {
			time.Sleep(3 * quick.Progress / 2)
			fmt.Fprintln(w, n, err)
			_ = http.NewResponseController(w).Flush()
		}
	})
	t.Run("upload", func(t *testing.T) {
		t.Parallel()
		body, send := io.Pipe()
		go func() {
			for range 30 {
				time.Sleep(quick.Progress / 10)
				_, _ = send.Write([]byte("x"))
			}
			send.Close()
		}()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.addr+"/", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "app.test"
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if text, err := io.ReadAll(res.Body); err != nil || string(text) != "30 <nil>\n30 <nil>\n" {
			t.Errorf("got %q, %v", text, err)
		}
	})
	t.Run("websocket", func(t *testing.T) {
		t.Parallel()
		c := g.dial(t, "GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		r := bufio.NewReader(c)
		if _, err := http.ReadResponse(r, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * quick.Progress)
		if _, err := io.WriteString(c, "still there?\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := r.ReadString('\n'); err != nil || line != "still there?\n" {
			t.Errorf("got %q, %v", line, err)
		}
	})
}

// A client that reads nothing of a large answer is cut off, and the app sees that.
func TestReaderWithoutProgress(t *testing.T) {
	t.Parallel()
	g := newGated(t, 1024, quick)
	told := make(chan error, 1)
	g.two(t, func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for err == nil {
			_, err = w.Write(make([]byte, 1<<20))
		}
		told <- err
	})
	g.dial(t, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatal("the app still writes")
	}
	eventually(t, "the count", func() bool { return g.gate.Stats().Refused["slow_reader"] == 1 })
	eventually(t, "the slot", func() bool { n, _ := g.used("app_requests"); return n == 0 })
}

// A client that sends all before it reads sees the answer, and no reset.
func TestRefusedUploadIsAnswered(t *testing.T) {
	g := newGated(t, 1024, Timeouts{})
	const size = 20 << 20
	c := g.dial(t, fmt.Sprintf("POST /refuse HTTP/1.1\r\nHost: api.test\r\nContent-Length: %d\r\n\r\n", size))
	if _, err := c.Write(make([]byte, size)); err != nil {
		t.Fatalf("the connection was reset: %v", err)
	}
	if line := says(c); line != "HTTP/1.1 413 Request Entity Too Large" {
		t.Errorf("got %q", line)
	}
}

// Ways to ask for much at once.
// A connection whose request was answered before its body was read serves the
// next request.
func TestUnreadBodyKeepsTheConnection(t *testing.T) {
	g := newGated(t, 1000, Timeouts{})
	conn := g.dial(t, "")
	answers := bufio.NewReader(conn)
	for n := range 50 {
		fmt.Fprint(conn, "POST /refuse HTTP/1.1\r\nHost: api.test\r\nContent-Length: 2\r\n\r\n{}")
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		if text, err := io.ReadAll(res.Body); err != nil || string(text) != "too large" || res.Close {
			t.Fatalf("request %d: got %q, %v, to be closed: %v", n, text, err, res.Close)
		}
	}
}

func TestGreedyRequests(t *testing.T) {
	g := newGated(t, 400, Timeouts{})
	g.two(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	})
	t.Run("pipelined", func(t *testing.T) {
		const n = 10_000
		c := g.dial(t, "")
		go func() {
			_, _ = io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n", n))
		}()
		r := bufio.NewReader(c)
		for i := range n {
			res, err := http.ReadResponse(r, nil)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("answer %d: got %v, %v", i, res, err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			if used, _ := g.used("app_requests"); used > 1 {
				t.Fatalf("%d requests are under way", used)
			}
		}
	})
	t.Run("huge head", func(t *testing.T) {
		c := g.dial(t, "GET / HTTP/1.1\r\nHost: app.test\r\n"+strings.Repeat("X-Huge: "+strings.Repeat("x", 1000)+"\r\n", 100)+"\r\n")
		if line := says(c); line != "HTTP/1.1 431 Request Header Fields Too Large" {
			t.Errorf("got %q", line)
		}
	})
	t.Run("tiny chunks", func(t *testing.T) {
		const n = 50_000
		c := g.dial(t, "POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"+strings.Repeat("1\r\nx\r\n", n)+"0\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(res.Body); string(text) != "50000 <nil>" {
			t.Errorf("got %d %q", res.StatusCode, text)
		}
	})
	g.alive(t)
}

// A client of very many apps leaves slots to others, however few each app gets.
func TestAnAddressLeavesSlotsToOthers(t *testing.T) {
	limits := bulkhead.LimitsFor(400)
	g := NewGate(limits)
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
	taken, why := 0, reason(0)
	for ok := true; ok; taken++ {
		why, ok = g.acquireApp(fmt.Sprint("app-", taken), one)
	}
	taken--
	if want := limits.Backends * addressFactor / (addressFactor + 1); taken < want || taken > want+1 || why != fullAddress {
		t.Errorf("one address has %d of %d slots, and then got %q; want %d, and %q", taken, limits.Backends, reasonNames[why], want, reasonNames[fullAddress])
	}
	if why, ok := g.acquireApp("app-0", other); !ok {
		t.Errorf("another address got %q; want a slot", reasonNames[why])
	}
	g.releaseApp("app-0", other)
	for n := range taken {
		g.releaseApp(fmt.Sprint("app-", n), one)
	}
	if n := g.apps.Used() + g.appClients.Used(); n != 0 {
		t.Errorf("%d slots are left over", n)
	}
}

// A flood to a TCP route leaves room for others.
func TestFloodOfAPort(t *testing.T) {
	g := newGated(t, 400, Timeouts{})
	g.two(t, nil)
	number := loopback.FreePorts(t, 1)[0]
	table := Table{Routes: []Route{{Port: number, AppGUID: appGUID, Endpoints: []Endpoint{tcpApp(t, "tcp")}}}}
	other := app(t, "other", 0, nil)
	other.AppGUID = otherApp
	table.Routes = append(table.Routes, Route{Host: "other.test", AppGUID: otherApp, Endpoints: []Endpoint{other}})
	g.Set(table)
	ports := NewPorts(g.Router, PortsConfig{Host: "127.0.0.1"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ports.Run(ctx, ctx) }()
	defer func() { cancel(); <-ended }()
	addr := fmt.Sprintf("127.0.0.1:%d", number)
	eventually(t, "the port", func() bool { c, err := net.Dial("tcp", addr); defer closeIf(c); return err == nil })
	for range 200 {
		c, _ := net.Dial("tcp", addr) // it may be reset at once
		defer closeIf(c)
	}
	eventually(t, "the refusals", func() bool { return g.gate.Stats().Refused["app"] > 100 })
	g.alive(t)
	if n, limit := g.used("app_requests"); n > limit/2+1 {
		t.Errorf("the port has %d of %d", n, limit)
	}
}

func closeIf(c net.Conn) {
	if c != nil {
		c.Close()
	}
}
