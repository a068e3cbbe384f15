package router

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorder is an instance that notes the bytes of each request, and answers one of
// answers, by the path /NUMBER.
type recorder struct {
	net.Listener
	mu   sync.Mutex
	seen []string
}

// answers are what the recorder answers, good and bad.
var answers = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/x\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\n\r\nhello",
	"HTTP/1.1 200 Fine\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nx-a: 1\r\nX-A: 2\r\n\r\n3;e=1\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: t\r\n\r\n",
	"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end",
	"HTTP/1.0 200 OK\r\nServer: old\r\n\r\nuntil the end",
	"HTTP/1.1 204 No Content\r\nX-B: b\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Type: text/x\r\nContent-Length: 7\r\n\r\n",
	"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 599 What\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\nConnection: X-Gone\r\nX-Gone: 1\r\nProxy-Authenticate: x\r\n\r\nno",
	"HTTP/1.1 200 OK\nContent-Length: 2\nX-Bare: 1\n\nok",
	"HTTP/1.1 200 OK\r\nSet-Cookie: JSESSIONID=a; Path=/x; Secure\r\nX-Vcap-Request-Id: own\r\nX-Cf-RouterError: mine\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 302 Found\r\nLocation: /x\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\nUpgrade: h2c\r\n\r\nok",
	"nonsense\r\n\r\n",
	"",
	"HTTP/1.1 200 OK\r\nContent-Len",
	"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nx\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
	"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx",
	"HTTP/1.1 101 Switching Protocols\r\nConnection: keep-alive, upgrade\r\nUpgrade: X\r\nX-Own: 1\r\nKeep-Alive: 5\r\nContent-Length: 5\r\nSet-Cookie: JSESSIONID=a\r\n\r\nearly",
	"HTTP/1.1 101 Switching Protocols\nConnection: upgrade\nUpgrade: x\n\nbare",
	"HTTP/1.1 101 Switching Protocols\r\n\r\n",
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
	"HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nno",
	"HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nok",
}

// endOfAll is what each conversation ends with.
var endOfAll = strings.Repeat("x", 100) + "\r\n\r\n"

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &recorder{Listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(conn)
		}
	}()
	return r
}

func (r *recorder) serve(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		var head bytes.Buffer
		req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(onlyHead{in}, &head)))
		if err != nil {
			return
		}
		body, err := readFramed(in, head.String())
		if err != nil { // broken off, at some time
			return
		}
		r.note(fmt.Sprintf("%s%q", head.String(), body))
		n := 0
		fmt.Sscanf(req.URL.Path, "/%d", &n)
		n %= len(answers)
		text, last := answers[n], slices.Contains([]int{4, 5, 10}, n) || n >= 15
		if req.Method == http.MethodHead {
			if before, _, ok := strings.Cut(text, "\r\n\r\n"); ok && !strings.Contains(text, " 103 ") {
				text, last = before+"\r\n\r\n", last && !strings.HasPrefix(text, "HTTP/1.1 200 OK\r\n") // it is a whole answer, after which the connection is used again
			}
		}
		if _, err := io.WriteString(conn, text); err != nil || last {
			if strings.HasPrefix(text, "HTTP/1.1 101 ") {
				r.tunnel(conn, in)
			}
			return
		}
	}
}

// tunnelCut is noted where not all has come after protocols were switched: net/http's guard had
// taken it for requests, some of them bad.
const tunnelCut = "tunnel cut"

// tunnel notes what comes after protocols were switched.
func (r *recorder) tunnel(conn net.Conn, in *bufio.Reader) {
	var all strings.Builder
	for !strings.HasSuffix(all.String(), endOfAll) {
		_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		c, err := in.ReadByte()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.note(tunnelCut)
		}
		if err != nil {
			return // they were not switched
		}
		all.WriteByte(c)
	}
	r.note(fmt.Sprintf("tunnel %q", all.String()))
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, text)
}

// cut cuts what was noted of tunnels.
func cut(seen []string) (out []string) {
	for _, text := range seen {
		if strings.HasPrefix(text, "tunnel ") {
			text = tunnelCut
		}
		out = append(out, text)
	}
	return out
}

// onlyHead reads byte by byte, so that nothing is read after a head.
type onlyHead struct{ *bufio.Reader }

func (r onlyHead) Read(p []byte) (int, error) { return r.Reader.Read(p[:1]) }

// readFramed reads a request's body.
func readFramed(in *bufio.Reader, head string) (string, error) {
	// http.ReadRequest has read the head alone: parse it again before the body.
	req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(head), in)))
	if err != nil {
		return "", err
	}
	if req.ContentLength == 0 {
		return "", nil
	}
	if req.ContentLength > 0 {
		p := make([]byte, req.ContentLength)
		n, err := io.ReadFull(in, p)
		return string(p[:n]), err
	}
	body := http.MaxBytesReader(nil, io.NopCloser(&chunkedBody{in: in}), 1<<20)
	text, err := io.ReadAll(body)
	return string(text), err
}

// chunkedBody reads well-formed chunks up to the end of the trailer, and their text.
type chunkedBody struct {
	in   *bufio.Reader
	left int
	done bool
}

func (c *chunkedBody) Read(p []byte) (int, error) {
	if c.done {
		return 0, io.EOF
	}
	if c.left == 0 {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("cut off: %v", err)
		}
		if _, err := fmt.Sscanf(line, "%x\r\n", &c.left); err != nil {
			return 0, fmt.Errorf("chunk %q: %w", line, err)
		}
		if c.left == 0 {
			for c.done = true; line != "\r\n" && err == nil; {
				line, err = c.in.ReadString('\n')
			}
			return 0, err
		}
	}
	n, err := c.in.Read(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 && err == nil {
		_, err = c.in.Discard(2)
	}
	return n, err
}

// take gives what was seen since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// generator makes what clients send: some of it good, some odd, some meant to smuggle
// requests.
type generator struct{ *rand.Rand }

func (g generator) of(texts ...string) string { return texts[g.IntN(len(texts))] }

// often is usual in n of n+1 cases.
func (g generator) often(n int, usual string, texts ...string) string {
	if g.IntN(n+1) > 0 {
		return usual
	}
	return g.of(texts...)
}

// oddHeaders are those that are rarely sent, or never in good faith.
var oddHeaders = []string{
	"Content-Length: 0", "Content-Length: 3", "Content-Length: 3\r\nContent-Length: 3", "Content-Length: 3, 3", "Content-Length : 3", "Content-Length: +3", "Content-Length: 0x3", "Content-Length:\t3", "content-length: 3 ",
	"Transfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 3", "Transfer-Encoding : chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding:\x0bchunked",
	"Transfer_Encoding: chunked", "X: y\r\n Transfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked", "X: y\nTransfer-Encoding: chunked", "X: \x00", "X: \x7f", "X\x00: y", " X: y", "X y", ": y", "é: y", "X: é", "\tX: y",
	"Host: other.test", "host: app.test", "Expect: 100-continue", "Expect: x", "Connection: close", "Connection: keep-alive", "Connection: X-Drop, close\r\nX-Drop: 1", "Connection: X-Forwarded-For", "Keep-Alive: 5", "Te: trailers", "Trailer: X", "Upgrade: h2c\r\nConnection: Upgrade", "Proxy-Connection: close", "Proxy: x",
	"X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: https", "X-Forwarded-Host: x.test", "Forwarded: for=1.2.3.4", "X_Forwarded_For: 6.6.6.6", "X-Request-Start: 5", "X-Vcap-Request-Id: mine", "X-Forwarded-Client-Cert: forged", "X-Cf-Instanceid: forged",
	"X-Cf-App-Instance: " + appGUID + ":0", "X-Cf-App-Instance: " + appGUID + ":7", "X-Cf-App-Instance: x", "X-Cf-Process-Instance: " + appGUID, "Cookie: JSESSIONID=a; __VCAP_ID__=one", "Cookie: JSESSIONID=a; __VCAP_ID__=gone", "X-Cf-Proxy-Signature: x",
	"Pragma: no-cache", "Cache-Control: no-cache", "Http2-Settings: x", "Authorization: basic eA==", "Content-Type: application/grpc", "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "X-B3-TraceId: 80f198ee56343ba8", "X-Dup: 1\r\nx-dup: 2", "X-Empty:", "X-Space:   a  b \t",
}

// upgrades ask for another protocol, some of them in bad faith.
var upgrades = []string{
	"Connection: Upgrade\r\nUpgrade: x\r\n", "Connection: Upgrade\r\nUpgrade: x\r\n", "Upgrade: x\r\nConnection: keep-alive, Upgrade\r\n", "Connection: upgrade\r\nUpgrade: X\r\n", "Connection: Upgrade\r\nUpgrade: x/1\r\n",
	"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-Websocket-Key: a\r\n", "Connection: Upgrade\r\n", "Upgrade: x\r\n", "Connection: Upgrade\r\nUpgrade:\r\n", "Connection: Upgrade, close\r\nUpgrade: x\r\n", "Connection: Upgrade, X-A\r\nUpgrade: x\r\n",
	"Connection: Upgrade\r\nUpgrade: x, y\r\n", "Connection: Upgrade\r\nUpgrade: x\r\nUpgrade: y\r\n", "Connection: Upgrade\r\nConnection: close\r\nUpgrade: x\r\n", "Connection: Upgrade\r\nUpgrade: h2c\r\nHttp2-Settings: x\r\n", "Connection: Upgrade\r\nUpgrade: x, h2c\r\n",
	"Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: 0\r\n", "Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: 3\r\n", "Connection: Upgrade\r\nUpgrade: x\r\nTransfer-Encoding: chunked\r\n", "Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
	"Connection: Upgrade\r\nUpgrade: é\r\n", "Connection: Upgrade\r\nUpgrade: x\r\nTe: trailers\r\n", "Connection: Upgrade\r\nUpgrade: x\r\nExpect: 100-continue\r\n",
}

// request makes one request.
func (g generator) request() string {
	method := g.often(20, g.of("GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"), "get", "TRACE", "CONNECT", "X-Y", "G(T", "")
	path := fmt.Sprintf("/%d", g.IntN(len(answers)))
	target := g.often(8, path, path+"?a=b&c=%zz", path+"/%2e%2E/x", path+"/%zz", path+"#x", "//"+path, "http://app.test"+path, "http://none.test"+path, "*", path+" x", path+"/é", path+"/{|}^`\\", path+"?"+strings.Repeat("q", 300), "")
	version := g.often(30, "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "HTTP/1.1 ", "http/1.1", "HTTP/01.1", "")
	end := g.often(40, "\r\n", "\n", "\r\r\n", " \r\n")
	text := method + g.often(40, " ", "  ", "\t") + target + " " + version + end
	text += g.often(15, "Host: "+g.often(6, "app.test", "app.test:80", "APP.test", "a.wild.test", "none.test", "empty.test", "app.test."), "Host:", "Host: a b", "Host : app.test", "Host: [::1]", "X: y", "Host: app.test/x") + "\r\n"
	for range g.IntN(4) {
		text += g.often(3, g.of("User-Agent: x/1", "Accept: */*", "X-A: "+strings.Repeat("a", g.IntN(50)), "Referer: http://x.test/\"", "Accept-Encoding: gzip", "Cookie: a=b", "x-lower: L"), oddHeaders...) + g.often(60, "\r\n", "\n", "\r\r\n")
	}
	text += g.often(3, "", upgrades...)
	body := strings.Repeat("b", g.IntN(40))
	switch g.IntN(12) {
	case 0, 1:
		text += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	case 2:
		text += "Transfer-Encoding: chunked\r\n"
		body = g.often(3, "3\r\nabc\r\n0\r\n\r\n", "3;x=y\r\nabc\r\n0\r\nX-T: t\r\n\r\n", "3\nabc\n0\n\n", "x\r\nabc\r\n0\r\n\r\n", "-1\r\n\r\n", "0003\r\nabc\r\n00\r\n\r\n", "4\r\nabc\r\n0\r\n\r\n", "0\r\n\r\nGET /0 HTTP/1.1\r\nHost: app.test\r\n\r\n")
	case 3:
		text += fmt.Sprintf("Content-Length: %d\r\n", max(0, len(body)+g.IntN(21)-10))
	default:
		body = ""
	}
	return text + g.often(60, "\r\n", "\n", "\r\r\n\r\n") + body
}

// conversation makes what a client sends on one connection. What comes last closes it
// in any case, well or badly.
func (g generator) conversation() string {
	text := ""
	for range 1 + g.IntN(3) {
		text += g.request()
	}
	return text + "GET /0 HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n" + endOfAll
}

// side is one of the two ways to the same instance.
type side struct {
	*site
	app     *recorder
	all     int          // requests so far
	netHTTP atomic.Int64 // those that came to net/http
	tunnels int          // how often protocols were switched
}

// newSide is a router that forwards some requests directly, or leaves all to net/http. With
// multi it is for HTTP/2.
func newSide(t *testing.T, multi, direct, distrust bool) *side {
	t.Helper()
	s := &side{site: &site{}, app: newRecorder(t)}
	c := Config{Log: slog.New(slog.DiscardHandler), DistrustForwarded: distrust, AccessLog: func(e AccessEntry) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, e.AppGUID+" "+string(e.Line))
	}}
	s.Router = New(c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	guarded := Guard(l, nil, s.config.Gate)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.netHTTP.Add(1)
		s.ServeHTTP(w, r)
	})
	var d Direct
	if multi {
		d.Handler = handler
	}
	if direct {
		guarded = s.Ahead(guarded, d)
	}
	server := NewServer(handler, c.Log, Timeouts{})
	go server.Serve(guarded)
	t.Cleanup(func() { server.Close() })
	s.Set(Table{Routes: []Route{route("app.test", endpointOf(s.app.Addr().String(), "one", 0)), route("*.wild.test", endpointOf(s.app.Addr().String(), "one", 0)), route("empty.test")}})
	return s
}

// outcome is what a conversation led to.
type outcome struct {
	Answers []string // each with its head as it was sent, and its body
	App     []string // what the instance got
	Log     []string
}

// varies is what differs each time.
var varies = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`X-Request-Start: \d{13}`), "X-Request-Start: NOW"},
	{regexp.MustCompile(`Date: \w{3}, \d\d \w{3} 20[2-9]\d \d\d:\d\d:\d\d GMT`), "Date: NOW"},
	{regexp.MustCompile(`endpoint_failure \([^\r\n]*\)`), "endpoint_failure"},
	{regexp.MustCompile(`\[20\d\d-[^]]*\]`), "[NOW]"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`(response|gorouter)_time:[\d.]+`), "${1}_time"},
}

func normal(texts []string) (out []string) {
	for _, text := range texts {
		for _, v := range varies {
			text = v.pattern.ReplaceAllString(text, v.text)
		}
		out = append(out, text)
	}
	return out
}

// converse has a conversation.
func (s *side) converse(text string) (outcome, error) {
	s.mu.Lock()
	s.log = nil
	s.mu.Unlock()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return outcome{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		return outcome{}, err
	}
	all, err := io.ReadAll(conn)
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
		return outcome{}, fmt.Errorf("after %q: %w", all, err)
	}
	conn.Close()
	for s.requests.n.Load() > 0 { // the log has all then
		time.Sleep(time.Millisecond)
	}
	s.all += len(s.lines())
	seen := s.app.take()
	s.tunnels += len(seen) - len(slices.DeleteFunc(slices.Clone(seen), func(text string) bool { return strings.HasPrefix(text, "tunnel ") }))
	app := slices.Compact(normal(seen)) // a request may be sent again on a new connection
	return outcome{split([]byte(normal([]string{string(all)})[0]), text), app, normal(s.lines())}, nil
}

// split tells answers apart.
func split(all []byte, requests string) (texts []string) {
	heads := strings.HasPrefix(requests, "HEAD ")
	for in := bufio.NewReader(bytes.NewReader(all)); ; heads = false {
		var head bytes.Buffer
		req := &http.Request{Method: http.MethodGet}
		if heads {
			req.Method = http.MethodHead
		}
		res, err := http.ReadResponse(bufio.NewReader(io.TeeReader(onlyHead{in}, &head)), req)
		if err != nil {
			rest, _ := io.ReadAll(in)
			return append(texts, head.String()+string(rest))
		}
		text := head.String()
		switch {
		case res.StatusCode < 200 || res.StatusCode == 204 || res.StatusCode == 304:
		case res.ContentLength >= 0:
			p := make([]byte, res.ContentLength)
			n, _ := io.ReadFull(in, p)
			text += string(p[:n])
		case len(res.TransferEncoding) > 0:
			body, err := io.ReadAll(&chunkedBody{in: in})
			text += fmt.Sprintf("%q %v", body, err)
		}
		texts = append(texts, text)
	}
}

// compare has a conversation both ways.
func compare(direct, other *side, text string) (diff string, err error) {
	got, err := direct.converse(text)
	if err != nil {
		return "", err
	}
	want, err := other.converse(text)
	if err != nil {
		return "", fmt.Errorf("by net/http: %w", err)
	}
	slices.Sort(got.Log)
	slices.Sort(want.Log)
	if slices.Contains(want.App, tunnelCut) {
		got.App, want.App = cut(got.App), cut(want.App)
	}
	return cmp.Diff(want, got), nil
}

// TestBothWaysAreTheSame has conversations with a router that forwards directly, and
// with one that leaves all to net/http: clients and instances get the same bytes.
func TestBothWaysAreTheSame(t *testing.T) {
	const workers = 4
	conversations := 12_000
	if testing.Short() {
		conversations = 400
	}
	for w := range workers {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			g := generator{rand.New(rand.NewPCG(uint64(w), 15))}
			direct, other := newSide(t, false, true, w%2 == 0), newSide(t, false, false, w%2 == 0)
			bad := 0
			for n := range conversations / workers {
				text := g.conversation()
				diff, err := "?", error(nil)
				for try := 0; try < 5 && diff != "" && err == nil; try++ { // net/http's transport may meet the end of a connection sooner or later
					diff, err = compare(direct, other, text)
				}
				if err != nil {
					t.Fatalf("conversation %d: %q: %v", n, text, err)
				}
				if diff != "" {
					t.Errorf("conversation %d: %q (-net/http +direct):\n%s", n, text, diff)
					if bad++; bad > 3 {
						return
					}
				}
			}
			if n := int(direct.netHTTP.Load()); n < direct.all/10 || n > direct.all*9/10 {
				t.Errorf("%d of %d requests came to net/http; want some of either kind", n, direct.all)
			}
			if direct.tunnels == 0 && !testing.Short() {
				t.Errorf("protocols were switched %d times; want some", direct.tunnels)
			}
			t.Logf("%d of %d requests were forwarded directly, protocols switched %d times", direct.all-int(direct.netHTTP.Load()), direct.all, direct.tunnels)
		})
	}
}
