package router

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func TestWebsocket(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			c.Write(r.Context(), kind, append([]byte("echo "), data...))
		}
	}))}})
	c, res, err := websocket.Dial(t.Context(), "ws://"+s.addr+"/", &websocket.DialOptions{Host: "app.test"})
	if err != nil {
		t.Fatal(err)
	}
	if res.Header.Get("X-Vcap-Request-Id") == "" {
		t.Error("got no X-Vcap-Request-Id")
	}
	for _, text := range []string{"hello", strings.Repeat("x", 20000)} {
		if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := c.Read(t.Context()); err != nil || string(got) != "echo "+text {
			t.Fatalf("got %.40q, %v; want the echo", got, err)
		}
	}
	c.Close(websocket.StatusNormalClosure, "")
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.lines(); len(got) != 1 || !strings.Contains(got[0], ` 101 `) {
		t.Errorf("got log %q; want one line with status 101", got)
	}
}

// h2cApp is an app that speaks HTTP/2 without TLS, and only that.
func h2cApp(t *testing.T, handler http.HandlerFunc) Endpoint {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	e := endpointOf(s.Listener.Addr().String(), "h2c", 0)
	e.Protocol = HTTP2
	return e
}

// h2cClient speaks HTTP/2 without TLS.
func h2cClient() *http.Transport {
	c := &http.Transport{Protocols: new(http.Protocols)}
	c.Protocols.SetUnencryptedHTTP2(true)
	return c
}

// TestGRPC has the shape of a gRPC call: HTTP/2 all the way, both directions
// at once, the result in a trailer.
func TestGRPC(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", h2cApp(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" {
			t.Errorf("got %s, te %q; want HTTP/2 and trailers", r.Proto, r.Header.Get("Te"))
		}
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for buf := make([]byte, 4); ; {
			if _, err := io.ReadFull(r.Body, buf); err != nil {
				break
			}
			w.Write(bytes.ToUpper(buf))
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Grpc-Status", "0")
	}))}})
	client := h2cClient()
	defer client.CloseIdleConnections()
	body, send := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.addr+"/svc/Method", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "app.test"
	req.Header.Set("Te", "trailers")
	res, err := client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for _, message := range []string{"ping", "pong"} { // each answered before the next is sent
		io.WriteString(send, message)
		got := make([]byte, 4)
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != strings.ToUpper(message) {
			t.Fatalf("got %q, %v; want %s", got, err, strings.ToUpper(message))
		}
	}
	send.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
		t.Fatalf("got %q, %v; want the end", rest, err)
	}
	if got := res.Trailer.Get("Grpc-Status"); got != "0" {
		t.Errorf("got trailer %q; want 0", got)
	}
}

func TestTLS(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Forwarded-Proto"), " ", r.Proto)
	}))}})
	template := httptest.NewTLSServer(nil)
	template.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(s.Router, s.config.Log, Timeouts{})
	go server.Serve(Guard(l, template.TLS, s.config.Gate))
	defer server.Close()
	for _, h2 := range []bool{true, false} {
		client := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: h2}
		defer client.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String()+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "app.test"
		res, err := client.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if got := string(body); got != "https HTTP/1.1" || (res.ProtoMajor == 2) != h2 {
			t.Errorf("h2 %t: got %q over %s", h2, got, res.Proto)
		}
	}
	conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	if got, _ := io.ReadAll(conn); !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
		t.Errorf("smuggling over TLS: got %.60q; want 400", got)
	}
	plain, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	fmt.Fprint(plain, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
	if got, _ := io.ReadAll(plain); !strings.Contains(string(got), "Client sent an HTTP request to an HTTPS server.") {
		t.Errorf("HTTP on the TLS port: got %q", got)
	}
}

// TestStreaming sees each piece of an answer before the next one is made.
func TestStreaming(t *testing.T) {
	for _, length := range []string{"", "6"} {
		s := newSite(t, Config{})
		step := make(chan bool)
		s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			for _, piece := range []string{"ab", "cd", "ef"} {
				io.WriteString(w, piece)
				w.(http.Flusher).Flush()
				<-step
			}
		}))}})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr+"/", nil)
		req.Host = "app.test"
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ab", "cd", "ef"} {
			got := make([]byte, 2)
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
				t.Fatalf("length %q: got %q, %v; want %s", length, got, err, want)
			}
			step <- true
		}
		res.Body.Close()
	}
}

func TestTrailers(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "got "+r.Trailer.Get("X-In"))
		w.Header().Set(http.TrailerPrefix+"X-Late", "1")
	}))}})
	got := s.raw(t, "POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\nTrailer: X-In\r\nConnection: close\r\n\r\n1\r\na\r\n0\r\nX-In: in\r\n\r\n")
	for _, want := range []string{"Trailer: X-Sum", "X-Sum: got in\r\n", "X-Late: 1\r\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q; want %q in it", got, want)
		}
	}
}

func TestExpectContinue(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{
		route("app.test", app(t, "app", 0, echo)),
		route("no.test", app(t, "no", 0, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) })),
	}})
	ask := func(host string) (*bufio.Reader, net.Conn) {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", host)
		return bufio.NewReader(conn), conn
	}
	r, conn := ask("app.test")
	for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
		if got, err := r.ReadString('\n'); err != nil || got != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	fmt.Fprint(conn, "hello")
	res, err := http.ReadResponse(r, nil)
	if err == nil && res.StatusCode == http.StatusContinue { // the app's own, which httputil passes on if it comes after the router's
		res, err = http.ReadResponse(r, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); res.StatusCode != 200 || !strings.Contains(string(body), `"hello"`) {
		t.Errorf("got %d %q; want the echo", res.StatusCode, body)
	}
	r, _ = ask("no.test")
	if got, err := r.ReadString('\n'); err != nil || got != "HTTP/1.1 403 Forbidden\r\n" {
		t.Errorf("got %q, %v; want 403 without 100", got, err)
	}
}

// TestAnswerBeforeTheEndOfABody has an app answer while the client still sends. Neither waits for the other, and both get all.
func TestAnswerBeforeTheEndOfABody(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		_, _ = io.WriteString(w, "begun\n")
		_ = rc.Flush()
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, n, err)
	}))}})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second)) // not reached but by a router that waits
	from := bufio.NewReader(conn)
	const size = 128 << 10
	for range 2 {
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size/2))
		res, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(res.Body)
		if line, err := in.ReadString('\n'); line != "begun\n" {
			t.Fatalf("got %q, %v before the body has ended", line, err)
		}
		_, _ = io.WriteString(conn, strings.Repeat("x", size/2))
		if rest, err := io.ReadAll(in); string(rest) != fmt.Sprintln(size, nil) || err != nil {
			t.Errorf("got %q, %v", rest, err)
		}
	}
}

func TestHTTP10(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "one ")
		w.(http.Flusher).Flush() // of unknown length
		io.WriteString(w, r.Proto)
	}))}})
	got := s.raw(t, "GET / HTTP/1.0\r\nHost: app.test\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.0 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\none HTTP/1.1") || strings.Contains(got, "chunked") {
		t.Errorf("got %q; want the body up to the end of the connection", got)
	}
}

func TestRetryKeepsTheBody(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", endpointOf(deadAddr(t), "dead", 0), endpointOf(deadAddr(t), "dead2", 1), app(t, "app", 2, echo))}})
	for range 3 {
		got := s.raw(t, "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
		if !strings.Contains(got, `POST / "hello"`) {
			t.Errorf("got %q; want the third endpoint's answer", got)
		}
	}
}

// TestBrokenAnswers cuts connections before, in and after an answer's head.
func TestBrokenAnswers(t *testing.T) {
	s := newSite(t, Config{})
	calls := 0
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		calls++
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, r.URL.Query().Get("say"))
		conn.Close()
	}))}})
	tests := []struct{ say, want string }{
		{"", "502 Bad Gateway"},
		{"HTTP/1.1%20200%20OK%0D%0A", "502 Bad Gateway"},
		{"nonsense%0D%0A%0D%0A", "502 Bad Gateway"},
		{"HTTP/1.1%20200%20OK%0D%0AContent-Length:%2010%0D%0A%0D%0Ahalf", "200 OK"},
	}
	for i, tt := range tests {
		got := s.raw(t, "POST /?say="+tt.say+" HTTP/1.1\r\nHost: app.test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+tt.want) {
			t.Errorf("%q: got %q; want %s", tt.say, got, tt.want)
		}
		if calls != i+1 {
			t.Fatalf("%q: the app was called %d times; want once each", tt.say, calls)
		}
	}
}

func TestClientGone(t *testing.T) {
	s := newSite(t, Config{})
	arrived := make(chan bool)
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-r.Context().Done()
		arrived <- true
	}))}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/", nil)
	req.Host = "app.test"
	if _, err := http.DefaultTransport.RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v; want a cancelled request", err)
	}
	<-arrived // the app learns of it
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.lines(); len(got) != 1 || !strings.Contains(got[0], " 499 ") {
		t.Errorf("got log %q; want status 499", got)
	}
}

func TestDrainingClosesConnections(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, nil))}})
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.raw(t, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"); !strings.Contains(got, "Connection: close\r\n") {
		t.Errorf("got %q; want the connection closed", got)
	}
}

func TestResponseHeaderTimeout(t *testing.T) {
	s := newSite(t, Config{Timeouts: Timeouts{ResponseHeader: 100 * time.Millisecond}})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))}})
	if got := s.get(t, "app.test/"); got.status != 502 || !strings.HasPrefix(got.header.Get("X-Cf-RouterError"), "endpoint_failure (") {
		t.Errorf("got %d %v; want 502", got.status, got.header)
	}
}
