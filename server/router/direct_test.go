package router

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/server/bulkhead"
	"cupola/test/loopback"
)

// directSite is a site on which nothing may come to net/http but what is meant to.
func directSite(t *testing.T, c Config, other http.HandlerFunc) (*site, net.Listener) {
	t.Helper()
	s := &site{}
	c.Log = slog.New(slog.DiscardHandler)
	c.AccessLog = func(e AccessEntry) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, string(e.Line))
	}
	s.Router = New(c)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = inner.Addr().String()
	if other == nil {
		other = func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s came to net/http", r.Method, r.URL) }
	}
	l := s.Ahead(Guard(inner, nil, s.config.Gate), Direct{Reserved: func(host string) bool { return host == "api.test" }})
	server := NewServer(other, c.Log, c.Timeouts)
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return s, l
}

// rawApp is an instance that answers each request on a connection with a text, and then
// closes it or not.
func rawApp(t *testing.T, answer func(n int) (text string, last bool)) Endpoint {
	t.Helper()
	addr := loopback.Serve(t, func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		for n := 0; ; n++ {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			text, last := answer(n)
			if _, err := io.WriteString(conn, text); err != nil || last {
				return
			}
		}
	})
	return endpointOf(addr.String(), "raw", 0)
}

// TestPlainRequestsAreDirect sees that plain requests do not come to net/http, and the
// others do.
func TestPlainRequestsAreDirect(t *testing.T) {
	s, _ := directSite(t, Config{}, nil)
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, echo))}})
	const many = "GET /1 HTTP/1.1\r\nHost: app.test\r\n\r\n" + "POST /2 HTTP/1.1\r\nHost: app.test\r\nContent-Length: 5\r\n\r\nhello" +
		"HEAD /3 HTTP/1.1\r\nHost: app.test\r\n\r\n" + "GET / HTTP/1.1\r\nHost: none.test\r\n\r\n" + "DELETE /4 HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n"
	got := s.raw(t, many)
	for _, want := range []string{`GET /1 ""`, `POST /2 "hello"`, "404 Not Found", `DELETE /4 ""`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q; want %q in it", got, want)
		}
	}
	if n := strings.Count(got, "HTTP/1.1 200 OK"); n != 4 || strings.Contains(got, "HEAD") {
		t.Errorf("got %d answers with 200 in %q; want 4", n, got)
	}
	if lines := s.lines(); len(lines) != 5 {
		t.Errorf("got log %q; want five lines", lines)
	}
	var mu sync.Mutex
	var came []string
	s, _ = directSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		came = append(came, fmt.Sprintf("%s %s %s%v", r.Host, r.URL.Path, body, err))
	})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, echo)), {Host: "service.test", ServiceURL: "http://app.test", Endpoints: []Endpoint{endpointOf("192.0.2.1:1", "x", 0)}}, route("h2.test", h2cApp(t, echo))}})
	for _, text := range []string{
		"GET /reserved HTTP/1.1\r\nHost: api.test\r\n", "GET /service HTTP/1.1\r\nHost: service.test\r\n", "GET /h2 HTTP/1.1\r\nHost: h2.test\r\n",
		"POST /chunks HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n", "GET /upgrade HTTP/1.1\r\nHost: app.test\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n",
	} {
		body := ""
		if strings.Contains(text, "chunked") {
			body = "3\r\nabc\r\n0\r\n\r\n"
		}
		s.raw(t, "GET /direct HTTP/1.1\r\nHost: app.test\r\n\r\n"+text+"\r\n"+body+"GET /then HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n")
	}
	mu.Lock()
	defer mu.Unlock()
	const want = "api.test /reserved <nil>|app.test /then <nil>|service.test /service <nil>|app.test /then <nil>|h2.test /h2 <nil>|app.test /then <nil>|app.test /chunks abc<nil>|app.test /then <nil>|app.test /upgrade <nil>|app.test /then <nil>"
	if got := strings.Join(came, "|"); got != want {
		t.Errorf("net/http got %s; want %s", got, want)
	}
}

// TestDirectOverTLS forwards what comes on a TLS connection directly, too.
func TestDirectOverTLS(t *testing.T) {
	s, _ := directSite(t, Config{}, nil)
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Forwarded-Proto"), " ", strings.Repeat("x", 200_000))
	}))}})
	template := httptest.NewTLSServer(nil)
	template.Close()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came to net/http") }), s.config.Log, Timeouts{})
	go server.Serve(s.Ahead(Guard(inner, template.TLS, s.config.Gate), Direct{}))
	defer server.Close()
	client := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer client.CloseIdleConnections()
	for range 3 {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+inner.Addr().String()+"/", nil)
		req.Host = "app.test"
		if got := do(t, client, req); got.status != 200 || got.body != "https "+strings.Repeat("x", 200_000) {
			t.Errorf("got %d with %d bytes", got.status, len(got.body))
		}
	}
}

// TestInstanceDiesAtEachByte breaks answers off after each of their bytes: a client sees
// a refusal or an answer that is cut off, and never a whole one, nor nothing.
func TestInstanceDiesAtEachByte(t *testing.T) {
	for _, whole := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
	} {
		s, _ := directSite(t, Config{}, nil)
		at := make(chan int, 1)
		s.Set(Table{Routes: []Route{route("app.test", rawApp(t, func(int) (string, bool) { return whole[:<-at], true }))}})
		for i := range len(whole) + 1 {
			at <- i
			got := s.raw(t, "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 2\r\n\r\nabGET / HTTP/1.1\r\nHost: none.test\r\nConnection: close\r\n\r\n")
			got = strings.TrimPrefix(got, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
			refused, ends := strings.HasPrefix(got, "HTTP/1.1 502 "), strings.HasSuffix(got, "('none.test') does not exist.\n")
			complete := strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") && strings.Contains(got, "hello") && ends
			switch {
			case i == len(whole) && complete, i < len(whole) && refused && ends, i < len(whole) && got != "" && !ends && !strings.Contains(got, " 502 "):
			default:
				t.Errorf("%q cut off after %d bytes: the client got %q", whole, i, got)
			}
		}
		if n := s.requests.n.Load(); n != 0 {
			t.Errorf("%d requests are under way", n)
		}
	}
}

// TestClosedLinksAreNotUsed has an instance close connections after an answer, or say
// something unasked on them: the next request does not meet that.
func TestClosedLinksAreNotUsed(t *testing.T) {
	for _, unasked := range []string{"", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"} {
		s, _ := directSite(t, Config{}, nil)
		e := rawApp(t, func(int) (string, bool) {
			return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + unasked, true
		})
		s.Set(Table{Routes: []Route{route("app.test", e)}})
		links := s.index.Load().lookup("app.test", "/").endpoints[0].links
		for n := range 50 {
			if got := s.get(t, "app.test/"); got.status != 200 || got.body != "ok" {
				t.Fatalf("request %d: got %d %q", n, got.status, got.body)
			}
			eventually(t, "the instance's end of the connection", func() bool {
				links.mu.Lock()
				defer links.mu.Unlock()
				return len(links.idle) == 0 || !links.idle[0].usable()
			})
		}
		if unasked == "" {
			eventually(t, "the last connection to be swept", func() bool { // it is kept after its answer was sent
				links.sweep()
				links.mu.Lock()
				defer links.mu.Unlock()
				return len(links.idle) == 0
			})
		}
	}
}

// TestLinksEnd holds idle connections to their time, and to the table.
func TestLinksEnd(t *testing.T) {
	s, _ := directSite(t, Config{}, nil)
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, nil))}})
	links := s.index.Load().lookup("app.test", "/").endpoints[0].links
	idle := func() int {
		links.mu.Lock()
		defer links.mu.Unlock()
		return len(links.idle)
	}
	s.get(t, "app.test/")
	eventually(t, "the idle connection", func() bool { return idle() == 1 })
	if got := links.outdated(time.Now().Add(links.life - time.Second)); len(got) != 0 || idle() != 1 {
		t.Errorf("%d connections ended early", len(got))
	}
	for _, l := range links.outdated(time.Now().Add(links.life)) {
		l.close()
	}
	if n := idle(); n != 0 {
		t.Errorf("%d connections are idle for too long", n)
	}
	s.get(t, "app.test/")
	eventually(t, "the idle connection", func() bool { return idle() == 1 })
	s.Set(Table{})
	if n := idle(); n != 0 {
		t.Errorf("%d connections to a removed endpoint are left", n)
	}
	if n := s.config.Gate.backends.Load(); n != 0 {
		t.Errorf("%d connections are counted", n)
	}
}

// TestLargeBodies passes bodies on that the kernel copies.
func TestLargeBodies(t *testing.T) {
	const size = 8 << 20
	whole := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	s, _ := directSite(t, Config{}, nil)
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", fmt.Sprint(size))
		}
		w.Write(whole)
	}))}})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for n := range 6 {
		fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: app.test\r\n\r\n", []string{"length", "chunks"}[n%2])
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, whole) {
			t.Fatalf("body %d: got %d bytes, %v", n, len(got), err)
		}
	}
	eventually(t, "the log", func() bool { return len(s.lines()) == 6 })
	for _, line := range s.lines() {
		if !strings.Contains(line, fmt.Sprintf(" 200 0 %d ", size)) {
			t.Errorf("got log %s", line)
		}
	}
}

// TestReaderOfLargeBodyWithoutProgress cuts a client off that takes nothing of what the
// kernel copies, and none that takes little.
func TestReaderOfLargeBodyWithoutProgress(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	limit := 6 * quick.Progress // a busy machine, and TCP that lost something on it, may be late
	s, _ := directSite(t, Config{Timeouts: Timeouts{Progress: limit}}, nil)
	told := make(chan error, 2)
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		var err error
		for n := 0; n < size && err == nil; n += 1 << 20 {
			_, err = w.Write(make([]byte, 1<<20))
		}
		told <- err
	}))}})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
	if err := <-told; err == nil {
		t.Error("the app wrote all to a client that reads nothing")
	}
	eventually(t, "the count", func() bool { return s.config.Gate.Stats().Refused["slow_reader"] == 1 })
	slow, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	fmt.Fprint(slow, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
	for range 6 { // for longer than the limit
		if _, err := io.CopyN(io.Discard, slow, 2<<20); err != nil {
			t.Fatalf("a client that takes little was cut off: %v", err)
		}
		time.Sleep(limit / 4)
	}
	if _, err := io.CopyN(io.Discard, slow, size-12<<20); err != nil {
		t.Errorf("got %v; want all", err)
	}
	if err := <-told; err != nil {
		t.Errorf("the app could not write: %v", err)
	}
}

// TestUpgradeAfterPlainRequests hands a connection over that has served requests.
func TestUpgradeAfterPlainRequests(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			fmt.Fprint(w, "plain")
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(conn, rw)
	}))}})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	const plain = "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"
	fmt.Fprint(conn, plain+plain+"POST / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\nContent-Length: 0\r\n\r\n")
	for range 2 {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(res.Body); string(body) != "plain" {
			t.Fatalf("got %q", body)
		}
	}
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 101 {
		t.Fatalf("got %v, %v; want 101", res, err)
	}
	fmt.Fprint(conn, "hello")
	got := make([]byte, len("hello"))
	if _, err := io.ReadFull(in, got); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestClosedListener ends idle connections, lets busy ones end, and answers who has
// connected before.
func TestClosedListener(t *testing.T) {
	arrived, goOn := make(chan bool), make(chan bool)
	s, l := directSite(t, Config{}, nil)
	s.Set(Table{Routes: []Route{route("slow.test", app(t, "slow", 0, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- true
		<-goOn
		fmt.Fprint(w, "done")
	})), route("app.test", app(t, "app", 0, nil))}})
	dial := func(text string) (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(conn, text)
		return conn, bufio.NewReader(conn)
	}
	_, idle := dial("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
	res, err := http.ReadResponse(idle, nil)
	if err != nil || res.Close {
		t.Fatalf("got %v, %v", res, err)
	}
	io.Copy(io.Discard, res.Body)
	_, busy := dial("GET / HTTP/1.1\r\nHost: slow.test\r\n\r\n")
	<-arrived
	conn, fresh := dial("")
	ahead := l.(*aheadListener)
	eventually(t, "the new connection", func() bool { ahead.mu.Lock(); defer ahead.mu.Unlock(); return len(ahead.conns) == 3 })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.ReadByte(); err != io.EOF {
		t.Errorf("idle: got %v; want the end", err)
	}
	select {
	case <-ahead.over:
		t.Error("Accept has failed while a new connection has said nothing")
	default:
	}
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
	if res, err := http.ReadResponse(fresh, nil); err != nil || res.StatusCode != 200 || !res.Close {
		t.Errorf("new: got %v, %v; want the answer and the end", res, err)
	}
	<-ahead.over
	goOn <- true
	if res, err := http.ReadResponse(busy, nil); err != nil || res.StatusCode != 200 || !res.Close {
		t.Errorf("busy: got %v, %v; want the answer and the end", res, err)
	}
}

// TestSecondCloseDropsNewConnections does not wait for clients that say nothing.
func TestSecondCloseDropsNewConnections(t *testing.T) {
	s, l := directSite(t, Config{}, nil)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ahead := l.(*aheadListener)
	eventually(t, "the connection", func() bool { ahead.mu.Lock(); defer ahead.mu.Unlock(); return len(ahead.conns) == 1 })
	l.Close()
	l.Close()
	<-ahead.over
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}

// TestNothingLeaks counts goroutines and descriptors after all kinds of ends.
func TestNothingLeaks(t *testing.T) {
	count := func() (goroutines, files int) {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(all)
	}
	goroutines, files := count()
	t.Run("requests", func(t *testing.T) {
		s, _ := directSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "net/http") })
		s.Set(Table{Routes: []Route{
			route("app.test", app(t, "app", 0, echo)),
			route("slow.test", app(t, "slow", 0, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })),
			route("cut.test", rawApp(t, func(int) (string, bool) { return "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\nx", true })),
			route("dead.test", endpointOf(deadAddr(t), "dead", 0)),
		}})
		var clients sync.WaitGroup
		for n := range 100 {
			clients.Go(func() {
				conn, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				host := []string{"app.test", "slow.test", "cut.test", "dead.test", "none.test", "api.test"}[n%6]
				fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
				if host != "slow.test" {
					_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
					_, _ = bufio.NewReader(conn).ReadString('\n')
				} else {
					time.Sleep(3 * patience)
				}
			})
		}
		clients.Wait()
		eventually(t, "the end of all requests", func() bool { return s.requests.n.Load() == 0 })
		s.Set(Table{})
		eventually(t, "the end of all connections to instances", func() bool { return s.config.Gate.backends.Load() == 0 })
	})
	eventually(t, "the end of goroutines and files", func() bool {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		g, f := count()
		return g <= goroutines && f <= files
	})
}

// TestSlowHeadIsCut bounds how long a head may take, also of a later request.
func TestSlowHeadIsCut(t *testing.T) {
	t.Parallel()
	s, _ := directSite(t, Config{Timeouts: Timeouts{RequestHeader: 200 * time.Millisecond}}, nil)
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, echo))}})
	const whole = "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"
	for _, text := range []string{"", "GET / HT", whole[:len(whole)-1], whole + "GET / H", whole + whole[:len(whole)-1]} {
		got := s.raw(t, text)
		if n := strings.Count(got, "HTTP/1.1 200 OK"); n != strings.Count(text, whole) || strings.Contains(got, " 400 ") {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// TestManyPieces takes a head that comes byte for byte.
func TestManyPieces(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, echo))}})
	for _, pause := range []int{1, 7, 40} {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for rest := "PUT /x HTTP/1.1\r\nHost: app.test\r\nContent-Length: 2\r\n\r\nab"; rest != ""; {
			n := min(pause, len(rest))
			fmt.Fprint(conn, rest[:n])
			rest = rest[n:]
			runtime.Gosched()
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(res.Body); string(body) != `PUT /x "ab"` {
			t.Errorf("pieces of %d: got %q", pause, body)
		}
	}
}

// TestBodyAfterItsHead forwards a small body directly that comes after the head, and
// leaves one to net/http that is large or late.
func TestBodyAfterItsHead(t *testing.T) {
	var mu sync.Mutex
	other := map[string]int64{}
	s, _ := directSite(t, Config{}, func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		other[r.URL.Path] = n
	})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, echo))}})
	send := func(path string, size int, pause func()) string {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", path, size)
		pause()
		_, _ = conn.Write(bytes.Repeat([]byte("x"), size))
		all, _ := io.ReadAll(conn)
		return string(all)
	}
	const tries = 20
	for n := range tries {
		got := send(fmt.Sprint("/", n), 4000, runtime.Gosched)
		mu.Lock()
		_, late := other[fmt.Sprint("/", n)] // where the machine is busy
		mu.Unlock()
		if !late && strings.Count(got, "x") < 4000 {
			t.Errorf("got %.200q", got)
		}
	}
	mu.Lock()
	if len(other) == tries {
		t.Error("all bodies came to net/http")
	}
	mu.Unlock()
	send("/large", 100_000, func() {})
	send("/late", 4000, func() { time.Sleep(10 * bodyTime) })
	mu.Lock()
	defer mu.Unlock()
	if other["/large"] != 100_000 || other["/late"] != 4000 {
		t.Errorf("net/http got %v", other)
	}
}

// TestDirectPanicEndsOneConnection has the access log panic.
func TestDirectPanicEndsOneConnection(t *testing.T) {
	c := Config{Log: slog.New(slog.DiscardHandler), Gate: NewGate(bulkhead.LimitsFor(1 << 20)), AccessLog: func(e AccessEntry) {
		if e.Request.RequestURI == "/panic" {
			panic("broken")
		}
	}}
	r := New(c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(r, c.Log, Timeouts{})
	go server.Serve(r.Ahead(Guard(l, nil, c.Gate), Direct{}))
	defer server.Close()
	s := &site{Router: r, addr: l.Addr().String()}
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, nil))}})
	s.raw(t, "GET /panic HTTP/1.1\r\nHost: app.test\r\n\r\n") // until its end
	if got := s.get(t, "app.test/"); got.body != "app" {
		t.Errorf("got %d %q", got.status, got.body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		t.Errorf("a request is under way: %v", err)
	}
}
