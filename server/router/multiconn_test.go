package router

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"
)

// secureSite is a site whose clients speak HTTP/2 over TLS.
type secureSite struct {
	*site
	server *http.Server
	client *http.Transport
}

func newSecureSite(t *testing.T, c Config, d Direct) *secureSite {
	t.Helper()
	s := &secureSite{site: &site{}}
	c.Log = slog.New(slog.DiscardHandler)
	c.AccessLog = func(e AccessEntry) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, e.AppGUID+" "+string(e.Line))
	}
	s.Router = New(c)
	template := httptest.NewTLSServer(nil)
	template.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	if d.Handler == nil {
		d.Handler = s.Router
	}
	s.server = NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("net/http's server has got a request") }), c.Log, c.Timeouts)
	go s.server.Serve(s.Ahead(Guard(l, template.TLS, s.config.Gate), d))
	t.Cleanup(func() { s.server.Close() })
	s.client = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true} //nolint:gosec // of a test
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// ask sends a request over HTTP/2.
func (s *secureSite) ask(t *testing.T, ctx context.Context, method, url string, body io.Reader, change func(*http.Request)) (*http.Response, error) {
	t.Helper()
	host, path, _ := strings.Cut(url, "/")
	req, err := http.NewRequestWithContext(ctx, method, "https://"+s.addr+"/"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	if change != nil {
		change(req)
	}
	return s.client.RoundTrip(req)
}

// text is the status and body of an answer.
func (s *secureSite) text(t *testing.T, method, url string, body io.Reader, change func(*http.Request)) string {
	t.Helper()
	res, err := s.ask(t, t.Context(), method, url, body, change)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.ProtoMajor != 2 {
		t.Errorf("%s: got %s, %v", url, res.Proto, err)
	}
	return fmt.Sprintf("%d %s", res.StatusCode, text)
}

func TestHTTP2OverTLSToClients(t *testing.T) {
	s := newSecureSite(t, Config{}, Direct{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %d %v", r.Proto, r.Header.Get("X-Forwarded-Proto"), r.Host, len(body), err)
	}))}})
	for _, size := range []int{0, 5, 100_000, 3 << 20} {
		if got, want := s.text(t, "POST", "app.test/", strings.NewReader(strings.Repeat("x", size)), nil), fmt.Sprintf("200 HTTP/1.1 https app.test %d <nil>", size); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	if got := s.text(t, "GET", "none.test/", nil, nil); !strings.HasPrefix(got, "404 404 Not Found: Requested route ('none.test')") {
		t.Errorf("got %q", got)
	}
	if lines := strings.Join(s.lines(), "\n"); !strings.Contains(lines, `"POST / HTTP/2.0" 200 3145728 `) {
		t.Errorf("got log %s", lines)
	}
}

// Reserved hosts are the handler's, on the same connection.
func TestHTTP2Reserved(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if clientOf(r.Context()) == nil || r.TLS == nil || r.RemoteAddr == "" {
			t.Errorf("got a request without its connection: %v", r)
		}
		fmt.Fprint(w, "api of ", r.Host, r.URL)
	})
	s := newSecureSite(t, Config{}, Direct{Handler: api, Reserved: func(host string) bool { return host == "api.test" }})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "app") }))}})
	for range 2 {
		for url, want := range map[string]string{"api.test/v3?a=b": "200 api of api.test/v3?a=b", "app.test/": "200 app"} {
			if got := s.text(t, "GET", url, nil, nil); got != want {
				t.Errorf("%s: got %q; want %q", url, got, want)
			}
		}
	}
}

// Each piece of an answer comes before the next one is made, and 1xx before the answer.
func TestHTTP2Streaming(t *testing.T) {
	s := newSecureSite(t, Config{}, Direct{})
	step := make(chan bool)
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.WriteHeader(200)
		rc := http.NewResponseController(w)
		for _, piece := range []string{"", "ab", "cd"} {
			_, _ = io.WriteString(w, piece)
			_ = rc.Flush()
			<-step
		}
	}))}})
	hints := make(chan string, 1)
	res, err := s.ask(t, t.Context(), "GET", "app.test/", nil, func(r *http.Request) {
		*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints <- fmt.Sprint(code, h.Get("Link"))
			return nil
		}}))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := <-hints; got != "103</a>" {
		t.Errorf("got hints %q", got)
	}
	step <- true
	for _, want := range []string{"ab", "cd"} {
		got := make([]byte, 2)
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %s", got, err, want)
		}
		step <- true
	}
}

// An app learns that the client has gone, before its answer and in it.
func TestHTTP2ClientGone(t *testing.T) {
	for _, begun := range []bool{false, true} {
		s := newSecureSite(t, Config{}, Direct{})
		arrived := make(chan bool)
		s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
			if begun {
				_ = http.NewResponseController(w).Flush()
			}
			arrived <- true
			<-r.Context().Done()
			arrived <- true
		}))}})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-arrived
			cancel()
		}()
		res, err := s.ask(t, ctx, "GET", "app.test/", nil, nil)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v; want a cancelled request", err)
		}
		<-arrived // the app learns of it
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.lines(); len(got) != 1 || !begun && !strings.Contains(got[0], " 499 ") {
			t.Errorf("begun %t: got log %q", begun, got)
		}
	}
}

// A client that asks whether to go on is told so once the body is wanted.
func TestHTTP2ExpectContinue(t *testing.T) {
	s := newSecureSite(t, Config{}, Direct{})
	s.client.ExpectContinueTimeout = time.Minute
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, echo)), route("no.test", app(t, "no", 0, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) }))}})
	expect := func(r *http.Request) { r.Header.Set("Expect", "100-continue") }
	if got := s.text(t, "POST", "app.test/", strings.NewReader("hello"), expect); !strings.Contains(got, `"hello"`) {
		t.Errorf("got %q", got)
	}
	if got := s.text(t, "POST", "no.test/", strings.NewReader("hello"), expect); !strings.HasPrefix(got, "403") {
		t.Errorf("got %q", got)
	}
}

// A client that stops in the middle of a body is told so.
func TestHTTP2BodyStalls(t *testing.T) {
	s := newSecureSite(t, Config{Timeouts: Timeouts{Progress: 100 * time.Millisecond}}, Direct{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, echo))}})
	body, send := io.Pipe()
	defer send.Close()
	go func() { _, _ = io.WriteString(send, "half") }()
	if got := s.text(t, "POST", "app.test/", body, nil); !strings.HasPrefix(got, "408 ") {
		t.Errorf("got %q; want 408", got)
	}
}

// A server that ends answers what has come, and lets no more begin on its connections.
func TestHTTP2Shutdown(t *testing.T) {
	s := newSecureSite(t, Config{}, Direct{})
	arrived, answer := make(chan bool), make(chan bool)
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-answer
		fmt.Fprint(w, "answered")
	}))}})
	got := make(chan string)
	go func() { got <- s.text(t, "GET", "app.test/", nil, nil) }()
	<-arrived
	if err := s.server.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	drained := make(chan error)
	go func() { drained <- s.Drain(t.Context()) }()
	select {
	case err := <-drained:
		t.Fatalf("drained with a request under way: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	answer <- true
	if text := <-got; text != "200 answered" {
		t.Errorf("got %q", text)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if _, err := s.ask(t, t.Context(), "GET", "app.test/", nil, nil); err == nil {
		t.Error("a request was answered after the end")
	}
}

// A request of HTTP/2 takes a slot of its app, and gives it back.
func TestHTTP2Budget(t *testing.T) {
	s := newSecureSite(t, Config{}, Direct{})
	arrived, answer := make(chan bool), make(chan bool)
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-answer
	}))}})
	got := make(chan string)
	go func() { got <- s.text(t, "GET", "app.test/", nil, nil) }()
	<-arrived
	if used := s.config.Gate.apps.Used(); used != 1 {
		t.Errorf("%d slots are used; want 1", used)
	}
	answer <- true
	<-got
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := s.config.Gate.apps.Used(); used != 0 {
		t.Errorf("%d slots are used after it", used)
	}
}

// The cookie of a client may come in pieces, and a session sticks to its instance.
func TestHTTP2Sticky(t *testing.T) {
	s := newSite(t, Config{})
	says := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
	}
	s.Set(Table{Routes: []Route{route("app.test", app(t, "one", 0, says("first")), app(t, "two", 1, says("second")))}})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c, err := dialMulti(conn)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		text, err := c.ask(multiRequest{Head: []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: "app.test"}, {Name: "cookie", Value: "JSESSIONID=a"}, {Name: "cookie", Value: "__VCAP_ID__=two"}}})
		if err != nil || !strings.Contains(text, "second") {
			t.Errorf("got %q, %v; want the second instance", text, err)
		}
	}
}
