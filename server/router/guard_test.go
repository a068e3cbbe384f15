package router

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// echo answers with the request's body.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, "%s %s %q", r.Method, r.RequestURI, body)
}

func TestSmuggling(t *testing.T) {
	s := newSite(t, Config{})
	var arrived atomic.Int32
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/bad") {
			if _, err := io.ReadAll(r.Body); err == nil {
				arrived.Add(1)
			}
			return
		}
		echo(w, r)
	}))}})
	const bad = "POST /bad HTTP/1.1\r\nHost: app.test\r\n"
	tests := []struct{ name, text string }{
		{"CL.TE", bad + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG"},
		{"TE.CL", bad + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n8\r\nSMUGGLED\r\n0\r\n\r\n"},
		{"same length twice", bad + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na"},
		{"other lengths", bad + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"},
		{"list of lengths", bad + "Content-Length: 1, 1\r\n\r\na"},
		{"signed length", bad + "Content-Length: +1\r\n\r\na"},
		{"encoding with a tab", bad + "Transfer-Encoding:\tchunked, identity\r\n\r\n0\r\n\r\n"},
		{"space before the colon", bad + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"},
		{"folded", bad + "X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\na"},
		{"HTTP/1.0 chunks", "POST /bad HTTP/1.0\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"size is no number", bad + "Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n"},
		{"negative size", bad + "Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n"},
		{"hex prefix", bad + "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n"},
		{"huge size", bad + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n"},
		{"chunk longer than its size", bad + "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n"},
		{"bare line feed after a size", bad + "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n"},
		{"zero byte", bad + "X: a\x00b\r\n\r\n"},
		{"two hosts", bad + "Host: other.test\r\n\r\n"},
	}
	for _, tt := range tests {
		got := s.raw(t, tt.text)
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") && !strings.HasPrefix(got, "HTTP/1.0 400 ") || strings.Count(got, "HTTP/1.") != 1 {
			t.Errorf("%s: got %.120q; want one 400", tt.name, got)
		}
		// After a request in good order the answer comes first.
		got = s.raw(t, "GET /good HTTP/1.1\r\nHost: app.test\r\n\r\n"+tt.text)
		if !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(got, "HTTP/1.1 400 ") && !strings.Contains(got, "HTTP/1.0 400 ") || strings.Count(got, "HTTP/1.") != 2 {
			t.Errorf("%s, pipelined: got %.300q; want 200, then 400", tt.name, got)
		}
	}
	if n := arrived.Load(); n != 0 {
		t.Errorf("the app got %d of the requests", n)
	}
}

func TestGuardLetsThrough(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, echo))}})
	text := "POST /1 HTTP/1.1\r\nHost: app.test\r\nContent-Length: 5\r\n\r\nhello" +
		"\r\nGET /2 HTTP/1.1\r\nHost: app.test\r\n\r\n" +
		"POST /3 HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nA: b\r\n\r\n" +
		"PUT /4 HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\nContent-Length: 3\r\n\r\nend"
	got := s.raw(t, text)
	for _, want := range []string{`POST /1 "hello"`, `GET /2 ""`, `POST /3 "hello world"`, `PUT /4 "end"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q; want %q in it", got, want)
		}
	}
}

func TestSlowAndGreedyClients(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{Timeouts: Timeouts{RequestHeader: 200 * time.Millisecond, ClientIdle: 200 * time.Millisecond}})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, echo))}})
	tests := []struct{ name, text, want string }{
		{"head never ends", "GET / HTTP/1.1\r\nHost: app.test\r\nX-A: b", ""},
		{"nothing at all", "", ""},
		{"idle after a request", "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n", "HTTP/1.1 200 OK"},
		{"head too large", "GET / HTTP/1.1\r\nHost: app.test\r\nX-A: " + strings.Repeat("a", 100<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
	}
	for _, tt := range tests {
		began := time.Now()
		got := s.raw(t, tt.text)
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" && !strings.HasPrefix(got, "HTTP/1.1 408 ") {
			t.Errorf("%s: got %.100q; want %q", tt.name, got, tt.want)
		}
		if took := time.Since(began); took >= 10*time.Second { // the default for a head
			t.Errorf("%s: took %s", tt.name, took)
		}
	}
}

// TestUpgradeEndsScanning sends what would be refused as HTTP over a
// connection that is none any more.
func TestUpgradeEndsScanning(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		rw.Flush()
		io.Copy(conn, rw)
	}))}})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: app.test\r\nConnection: upgrade\r\nUpgrade: rawecho/1\r\nContent-Length: 0\r\n\r\n")
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 101 || res.Header.Get("Upgrade") != "rawecho/1" {
		t.Fatalf("got %d %v; want 101 and the upgrade", res.StatusCode, res.Header)
	}
	const odd = "X\r\n folded\r\n\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"
	fmt.Fprint(conn, odd)
	got := make([]byte, len(odd))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != odd {
		t.Errorf("got %q, %v; want %q", got, err, odd)
	}
}
