package router

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cupola/test/loopback"
)

const (
	askSwitch = "GET / HTTP/1.1\r\nHost: app.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\n"
	switched  = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
)

// switching is a site whose app's connections are given to serve once the head of a request has
// come; in has what follows the head.
func switching(t *testing.T, c Config, serve func(conn *net.TCPConn, in *bufio.Reader)) *site {
	t.Helper()
	addr := loopback.Serve(t, func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if req.Header.Get("Connection") != "Upgrade" || req.Header.Get("Upgrade") != "echo" || req.Header.Get("X-Forwarded-For") != "127.0.0.1" {
			t.Errorf("the app got %v", req.Header)
		}
		serve(conn.(*net.TCPConn), in)
	})
	s, _ := directSite(t, c, nil)
	s.Set(Table{Routes: []Route{route("app.test", endpointOf(addr.String(), "app", 0))}})
	t.Cleanup(func() { eventually(t, "the end of all requests", func() bool { return s.idle() }) })
	return s
}

// idle reports whether nothing is counted.
func (s *site) idle() bool {
	return s.requests.n.Load() == 0 && s.config.Gate.apps.Used() == 0 && s.config.Gate.backends.Load() == 0
}

// connect sends a text and reads the head of the answer.
func (s *site) connect(t *testing.T, text string) (*net.TCPConn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(conn, text)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn), in, res
}

func echoAll(conn *net.TCPConn, in *bufio.Reader) {
	fmt.Fprint(conn, switched)
	_, _ = io.Copy(conn, in)
	_ = conn.CloseWrite()
}

// TestTunnel passes on what comes with the heads and after them, little and much, and the end
// of either side, after which the other still speaks.
func TestTunnel(t *testing.T) {
	s := switching(t, Config{}, func(conn *net.TCPConn, in *bufio.Reader) {
		fmt.Fprint(conn, switched+"early ")
		_, _ = io.Copy(conn, in)
		fmt.Fprint(conn, " late")
		_ = conn.CloseWrite()
	})
	large := strings.Repeat("0123456789abcdef", 1<<18)
	for _, text := range []string{"", "hello", large} {
		conn, in, res := s.connect(t, askSwitch+"first ")
		if res.StatusCode != 101 || res.Header.Get("Upgrade") != "echo" || res.Header.Get("Connection") != "Upgrade" || res.Header.Get("X-Vcap-Request-Id") == "" {
			t.Fatalf("got %d %v; want 101", res.StatusCode, res.Header)
		}
		go func() {
			fmt.Fprint(conn, text)
			_ = conn.CloseWrite()
		}()
		got, err := io.ReadAll(in)
		if want := "early first " + text + " late"; err != nil || string(got) != want {
			t.Errorf("got %d bytes %.50q, %v; want %d", len(got), got, err, len(want))
		}
	}
	eventually(t, "the log", func() bool { return len(s.lines()) == 3 })
	for _, line := range s.lines() {
		if !strings.Contains(line, ` "GET / HTTP/1.1" 101 0 0 `) {
			t.Errorf("got log %s", line)
		}
	}
}

// TestTunnelMessages sends small messages there and back, on many connections that come and go.
func TestTunnelMessages(t *testing.T) {
	s := switching(t, Config{}, echoAll)
	for n := range 20 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			conn, in, _ := s.connect(t, askSwitch)
			got := make([]byte, 100)
			for m := range 100 {
				message := bytes.Repeat([]byte{byte(n), byte(m)}, 50)
				if _, err := conn.Write(message); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(in, got); err != nil || !bytes.Equal(got, message) {
					t.Fatalf("message %d: got %q, %v", m, got, err)
				}
			}
		})
	}
}

// TestTunnelOverTLS does it for a client with TLS, which both sides end.
func TestTunnelOverTLS(t *testing.T) {
	s := switching(t, Config{}, echoAll)
	template := httptest.NewTLSServer(nil)
	template.Close()
	l := loopback.Listen(t)
	server := NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came to net/http") }), s.config.Log, Timeouts{})
	go server.Serve(s.Ahead(Guard(l, template.TLS, s.config.Gate), Direct{}))
	t.Cleanup(func() { server.Close() })
	conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	text := strings.Repeat("x", 300_000)
	go func() {
		fmt.Fprint(conn, askSwitch+text)
		_ = conn.CloseWrite()
	}()
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 101 {
		t.Fatalf("got %v, %v; want 101", res, err)
	}
	if got, err := io.ReadAll(in); err != nil || string(got) != text {
		t.Errorf("got %d bytes, %v; want %d", len(got), err, len(text))
	}
}

// TestTunnelBreaks has either side vanish: the other learns of it.
func TestTunnelBreaks(t *testing.T) {
	ended := make(chan error, 1)
	s := switching(t, Config{}, func(conn *net.TCPConn, in *bufio.Reader) {
		fmt.Fprint(conn, switched)
		_, err := in.ReadByte()
		_ = conn.SetLinger(0)
		ended <- err
	})
	conn, _, _ := s.connect(t, askSwitch)
	_ = conn.SetLinger(0)
	conn.Close()
	if err := <-ended; err == nil {
		t.Error("the app read something of a client that broke off")
	}
	conn, in, _ := s.connect(t, askSwitch)
	fmt.Fprint(conn, "x") // has the app break off
	if b, err := in.ReadByte(); err == nil {
		t.Errorf("the client read %q of an app that has ended", b)
	}
	<-ended
	eventually(t, "the end", s.idle) // though the client is there
}

// TestTunnelOfEndedAppEnds ends a client that says nothing when its app has ended.
func TestTunnelOfEndedAppEnds(t *testing.T) {
	s := switching(t, Config{Timeouts: quick}, func(conn *net.TCPConn, _ *bufio.Reader) { fmt.Fprint(conn, switched) })
	_, in, _ := s.connect(t, askSwitch)
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("got %v; want the end", err)
	}
	eventually(t, "the end", s.idle)
}

// TestRefusedSwitch answers like other requests what is no 101, and goes on. One that was not
// asked for, or is of another protocol, is no answer.
func TestRefusedSwitch(t *testing.T) {
	answers := make(chan string, 1)
	s, _ := directSite(t, Config{}, nil)
	s.Set(Table{Routes: []Route{route("app.test", rawApp(t, func(int) (string, bool) {
		text := <-answers
		return text, strings.Contains(text, " 101 ")
	}))}})
	const plain = "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"
	for _, tt := range []struct {
		ask, answer string
		want        int
	}{
		{askSwitch, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200},
		{askSwitch, "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno", 400},
		{askSwitch, "HTTP/1.1 426 Upgrade Required\r\nUpgrade: other\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\nno", 426},
		{askSwitch, "HTTP/1.1 101 Switching Protocols\r\n\r\n", 502},
		{askSwitch, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\n", 502},
		{askSwitch, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n", 502},
		{plain, switched, 502},
	} {
		answers <- tt.answer
		conn, in, res := s.connect(t, tt.ask)
		_, _ = io.Copy(io.Discard, res.Body)
		if res.StatusCode != tt.want || res.Header.Get("Upgrade") != "" {
			t.Errorf("%q: got %d %v; want %d", tt.answer, res.StatusCode, res.Header, tt.want)
		}
		answers <- "HTTP/1.1 204 No Content\r\n\r\n"
		fmt.Fprint(conn, plain)
		if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 204 {
			t.Errorf("%q, and then: got %v, %v; want 204", tt.answer, res, err)
		}
		conn.Close()
	}
}
