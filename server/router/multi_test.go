package router

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// multiClient speaks HTTP/2 frame by frame.
type multiClient struct {
	net.Conn
	*http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	next    uint32
}

func dialMulti(conn net.Conn) (*multiClient, error) {
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	c := &multiClient{Conn: conn, Framer: http2.NewFramer(conn, conn), next: 1}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.encoder = hpack.NewEncoder(&c.block)
	_, err := io.WriteString(conn, http2.ClientPreface)
	return c, errors.Join(err, c.WriteSettings(), c.WriteWindowUpdate(0, 1<<20))
}

// multiRequest is what a client sends on a stream.
type multiRequest struct {
	Head    []hpack.HeaderField
	Body    []string // the frames with data
	Trailer []hpack.HeaderField
}

func (c *multiClient) head(id uint32, end bool, fields []hpack.HeaderField) error {
	c.block.Reset()
	for _, f := range fields {
		_ = c.encoder.WriteField(f)
	}
	return c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndHeaders: true, EndStream: end})
}

// ask sends a request, and returns its answer as text.
func (c *multiClient) ask(r multiRequest) (string, error) {
	id := c.next
	c.next += 2
	err := c.head(id, len(r.Body) == 0 && r.Trailer == nil, r.Head)
	for i, data := range r.Body {
		err = errors.Join(err, c.WriteData(id, i == len(r.Body)-1 && r.Trailer == nil, []byte(data)))
	}
	if r.Trailer != nil {
		err = errors.Join(err, c.head(id, true, r.Trailer))
	}
	if err != nil {
		return "", err
	}
	return c.answer(id)
}

func (c *multiClient) answer(id uint32) (string, error) {
	var text, body strings.Builder
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return text.String(), err
		}
		ended := false
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			var lines []string
			for _, field := range f.Fields {
				lines = append(lines, fmt.Sprintf("%s: %s\r\n", http.CanonicalHeaderKey(field.Name), field.Value))
			}
			slices.Sort(lines) // the two ways have Content-Length and Date at different places
			fmt.Fprintf(&text, "%s\r\n", strings.Join(lines, ""))
			ended = f.StreamEnded()
		case *http2.DataFrame:
			body.Write(f.Data())
			ended = f.StreamEnded()
			if n := f.Length; n > 0 {
				err = errors.Join(c.WriteWindowUpdate(0, n), c.WriteWindowUpdate(id, n))
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == id && f.ErrCode == http2.ErrCodeNo { // all has come
				continue
			}
			if f.StreamID == id {
				return text.String() + f.ErrCode.String(), nil // how much has come is chance
			}
		case *http2.GoAwayFrame:
			return text.String(), errGoAway
		}
		if f.Header().StreamID == id && ended {
			return fmt.Sprintf("%s%q", text.String(), body.String()), err
		}
	}
}

// errGoAway is met when the server ends the connection. net/http does at trailers of a stream that it
// has reset, though they were on their way.
var errGoAway = errors.New("GOAWAY")

// multi makes a request of HTTP/2. What the two ways refuse in other words is left to the tests of
// package h2.
func (g generator) multi() (r multiRequest) {
	method := g.often(20, g.of("GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"), "get", "TRACE", "X-Y", "PRI")
	path := fmt.Sprintf("/%d", g.IntN(len(answers)))
	path = g.often(8, path, path+"?a=b&c=%zz", path+"/%2e%2E/x", path+"/%zz", path+"#x", "//"+path, "http://app.test"+path, "*", path+"/é", path+"/{|}^`\\", path+"?"+strings.Repeat("q", 300), "x")
	host := g.often(6, "app.test", "app.test:80", "APP.test", "a.wild.test", "none.test", "empty.test", "app.test.", "a b", "[::1]", "")
	r.Head = []hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: path}}
	switch g.IntN(8) {
	case 0:
		r.Head = append(r.Head, hpack.HeaderField{Name: "host", Value: host})
	case 1:
		r.Head = append(r.Head, hpack.HeaderField{Name: ":authority", Value: host}, hpack.HeaderField{Name: "host", Value: host})
	default:
		r.Head = append(r.Head, hpack.HeaderField{Name: ":authority", Value: host})
	}
	for range g.IntN(5) {
		more := fieldsOf(g.often(3, g.of("User-Agent: x/1", "Accept: */*", "X-A: "+strings.Repeat("a", g.IntN(50)), "Referer: http://x.test/\"", "Accept-Encoding: gzip", "Cookie: a=b", "Cookie: c=d", "Te: trailers"), oddHeaders...))
		if len(more) > 0 && more[0].Name == "te" && slices.Contains(r.Head, more[0]) {
			continue
		}
		r.Head = append(r.Head, more...)
	}
	r.body(g)
	return r
}

// fieldsOf are the headers in lines that HTTP/2 can have.
func fieldsOf(lines string) (fields []hpack.HeaderField) {
	for line := range strings.SplitSeq(lines, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		name, value = strings.ToLower(name), strings.Trim(value, " \t")
		switch name {
		case "content-length", "host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
			continue
		}
		if httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value) && (name != "te" || value == "trailers") {
			fields = append(fields, hpack.HeaderField{Name: name, Value: value})
		}
	}
	return fields
}

func (r *multiRequest) body(g generator) {
	if g.IntN(2) == 0 {
		return
	}
	n := 0
	for range 1 + g.IntN(3) {
		text := strings.Repeat("b", []int{0, 5, g.IntN(100), g.IntN(12_000)}[g.IntN(4)])
		r.Body = append(r.Body, text)
		n += len(text)
	}
	if g.IntN(2) == 0 {
		r.Head = append(r.Head, hpack.HeaderField{Name: "content-length", Value: fmt.Sprint(n)})
	}
	if g.IntN(8) == 0 {
		r.Trailer = []hpack.HeaderField{{Name: "x-t", Value: "t"}, {Name: "x-u", Value: "u"}}
		if g.IntN(2) == 0 {
			r.Head = append(r.Head, hpack.HeaderField{Name: "trailer", Value: "X-T"})
		}
	}
}

// converseMulti sends requests on one connection, one after the other.
func (s *side) converseMulti(requests []multiRequest) (o outcome, err error) {
	s.mu.Lock()
	s.log = nil
	s.mu.Unlock()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return o, err
	}
	defer conn.Close()
	c, err := dialMulti(conn)
	if err != nil {
		return o, err
	}
	for _, r := range requests {
		text, err := c.ask(r)
		if err != nil {
			return o, fmt.Errorf("%q: %w", text, err)
		}
		o.Answers = append(o.Answers, text)
	}
	conn.Close()
	for s.requests.n.Load() > 0 { // the log has all then
		time.Sleep(time.Millisecond)
	}
	s.all += len(s.lines())
	o.Answers, o.Log = normal(o.Answers), normal(s.lines())
	o.App = slices.Compact(normal(s.app.take())) // a request may be sent again on a new connection
	slices.Sort(o.Log)
	return o, nil
}

const byNetHTTP = "by net/http"

func compareMulti(ours, other *side, requests []multiRequest) (string, error) {
	got, err := ours.converseMulti(requests)
	if err != nil {
		return "", err
	}
	want, err := other.converseMulti(requests)
	if err != nil {
		return "", fmt.Errorf("%s: %w", byNetHTTP, err)
	}
	return cmp.Diff(want, got), nil
}

// TestHTTP2IsTheSame sends requests of HTTP/2 to a router that serves it itself, and to one that
// leaves it to net/http: clients and instances get the same.
func TestHTTP2IsTheSame(t *testing.T) {
	const workers = 4
	conversations := 6_000 // of 2 requests in the mean
	if testing.Short() {
		conversations = 200
	}
	for w := range workers {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			g := generator{rand.New(rand.NewPCG(uint64(w), 2))}
			ours, other := newSide(t, true, true, w%2 == 0), newSide(t, true, false, w%2 == 0)
			bad := 0
			for n := range conversations / workers {
				var requests []multiRequest
				for range 1 + g.IntN(3) {
					requests = append(requests, g.multi())
				}
				diff, err := "?", error(nil)
				for try := 0; try < 5 && diff != "" && err == nil; try++ { // as in TestBothWaysAreTheSame
					diff, err = compareMulti(ours, other, requests)
				}
				if errors.Is(err, errGoAway) && strings.HasPrefix(err.Error(), byNetHTTP) {
					continue
				}
				if err != nil {
					t.Fatalf("conversation %d: %q: %v", n, requests, err)
				}
				if diff != "" {
					t.Errorf("conversation %d: %.2000q (-net/http +ours):\n%s", n, requests, diff)
					if bad++; bad > 3 {
						return
					}
				}
			}
			if n := int(ours.netHTTP.Load()); n < ours.all/10 || n > ours.all*9/10 {
				t.Errorf("%d of %d requests came to the handler; want some of either kind", n, ours.all)
			}
			t.Logf("%d of %d requests were forwarded directly", ours.all-int(ours.netHTTP.Load()), ours.all)
		})
	}
}
