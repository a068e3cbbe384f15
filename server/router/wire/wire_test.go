package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestRequest(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: a.test\r\n"
	tests := []struct {
		name, text string
		want       Verdict
	}{
		{"plain", get + "\r\n", Plain},
		{"body", "POST /a?b=%zz HTTP/1.1\r\nHost: a.test:80\r\nContent-Length: 5\r\n\r\n", Plain},
		{"nothing", "", Partial},
		{"half a line", "GET / HT", Partial},
		{"half a head", get, Partial},
		{"half an end", get + "\r", Partial},
		{"bare line feed", "GET / HTTP/1.1\nHost: a.test\n\n", Odd},
		{"bare line feed at the end", get + "\n", Odd},
		{"bare carriage return", get + "A: b\rc\r\n\r\n", Odd},
		{"empty line first", "\r\n" + get + "\r\n", Odd},
		{"HTTP/1.0", "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n", Odd},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Odd},
		{"no version", "GET /\r\n\r\n", Odd},
		{"two spaces", "GET  / HTTP/1.1\r\n\r\n", Odd},
		{"lower case", "get / HTTP/1.1\r\nHost: a.test\r\n\r\n", Odd},
		{"CONNECT", "CONNECT / HTTP/1.1\r\nHost: a.test\r\n\r\n", Odd},
		{"absolute form", "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", Odd},
		{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", Odd},
		{"two slashes", "GET //a HTTP/1.1\r\nHost: a.test\r\n\r\n", Odd},
		{"fragment", "GET /a#b HTTP/1.1\r\nHost: a.test\r\n\r\n", Odd},
		{"bad escape", "GET /%zz HTTP/1.1\r\nHost: a.test\r\n\r\n", Odd},
		{"short escape", "GET /%a HTTP/1.1\r\nHost: a.test\r\n\r\n", Odd},
		{"path not ASCII", "GET /\xc3\xa9 HTTP/1.1\r\nHost: a.test\r\n\r\n", Odd},
		{"no host", "GET / HTTP/1.1\r\n\r\n", Odd},
		{"empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", Odd},
		{"two hosts", get + "Host: a.test\r\n\r\n", Odd},
		{"host of an address", "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", Odd},
		{"host with a slash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Odd},
		{"two lengths", get + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", Odd},
		{"list of lengths", get + "Content-Length: 1, 1\r\n\r\n", Odd},
		{"signed length", get + "Content-Length: +1\r\n\r\n", Odd},
		{"empty length", get + "Content-Length: \r\n\r\n", Odd},
		{"huge length", get + "Content-Length: 1000000000000000000\r\n\r\n", Odd},
		{"chunks", get + "Transfer-Encoding: chunked\r\n\r\n", Odd},
		{"length and chunks", get + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", Odd},
		{"chunks by another spelling", get + "tRANSFER-eNCODING: x\r\n\r\n", Odd},
		{"space before the colon", get + "Content-Length : 1\r\n\r\n", Odd},
		{"no colon", get + "Content-Length\r\n\r\n", Odd},
		{"no name", get + ": 1\r\n\r\n", Odd},
		{"folded", get + "A: b\r\n c\r\n\r\n", Odd},
		{"folded by a tab", get + "A: b\r\n\tc: d\r\n\r\n", Odd},
		{"zero byte", get + "A: b\x00\r\n\r\n", Odd},
		{"DEL", get + "A: b\x7f\r\n\r\n", Odd},
		{"name not ASCII", get + "\xc3\xa9: b\r\n\r\n", Odd},
		{"value not ASCII", get + "A: \xc3\xa9\r\n\r\n", Plain},
		{"upgrade", get + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", Plain},
		{"upgrade of a browser", get + "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\r\n", Plain},
		{"upgrade to a version", get + "Upgrade: SPDY/3.1\r\nConnection: upgrade\r\n\r\n", Plain},
		{"upgrade to HTTP/2", get + "Connection: Upgrade\r\nUpgrade: H2C\r\n\r\n", Odd},
		{"upgrade to one of two", get + "Connection: Upgrade\r\nUpgrade: websocket, x\r\n\r\n", Odd},
		{"upgrade twice", get + "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: websocket\r\n\r\n", Odd},
		{"upgrade to nothing", get + "Connection: Upgrade\r\nUpgrade:\r\n\r\n", Odd},
		{"upgrade of the connection alone", get + "Connection: Upgrade\r\n\r\n", Odd},
		{"upgrade not of the connection", get + "Upgrade: websocket\r\n\r\n", Odd},
		{"upgrade of a connection that closes", get + "Connection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n", Odd},
		{"upgrade with a length", get + "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n", Odd},
		{"upgrade with chunks", get + "Connection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n", Odd},
		{"upgrade of a POST", "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", Odd},
		{"expectation", get + "Content-Length: 1\r\nExpect: 100-continue\r\n\r\n", Odd},
		{"header of the connection", get + "Connection: close, X-A\r\n\r\n", Odd},
		{"two of the connection", get + "Connection: close\r\nConnection: close\r\n\r\n", Odd},
		{"trailers", get + "Trailer: A\r\n\r\n", Odd},
		{"gRPC", get + "Content-Type: application/grpc+proto\r\n\r\n", Odd},
		{"as many headers as are plain", get + strings.Repeat("A: b\r\n", maxFields-1) + "\r\n", Plain},
		{"too many headers", get + strings.Repeat("A: b\r\n", maxFields), Odd},
		{"pragma", get + "Pragma: no-cache\r\n\r\n", Odd},
		{"pragma and cache control", get + "Pragma: no-cache\r\nCache-Control: no-cache\r\n\r\n", Plain},
	}
	for _, tt := range tests {
		var r Request
		n, got := r.Parse([]byte(tt.text))
		if got != tt.want || got == Plain && n != len(tt.text) || got != Plain && n != 0 {
			t.Errorf("%s: got %d bytes and verdict %d; want %d", tt.name, n, got, tt.want)
		}
		if got != Plain {
			continue
		}
		for i := range len(tt.text) - 1 {
			if _, v := r.Parse([]byte(tt.text[:i])); v != Partial {
				t.Errorf("%s: got verdict %d of the first %d bytes; want Partial", tt.name, v, i)
			}
		}
	}
}

// like checks a parsed request against net/http's.
func like(t *testing.T, r *Request, text string) {
	t.Helper()
	want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatalf("net/http refuses what is plain: %v", err)
	}
	type parts struct {
		Method, Target, Host string
		Length               int64
		Close                bool
		Header               http.Header
	}
	have := parts{r.Method, r.Target, r.Host, r.Length, r.Close, r.Header}
	if diff := cmp.Diff(parts{want.Method, want.RequestURI, want.Host, want.ContentLength, want.Close, want.Header}, have); diff != "" {
		t.Fatalf("not net/http's request (-want +got):\n%s", diff)
	}
	if want.URL.Opaque != "" || want.URL.Host != "" || want.URL.Scheme != "" || len(want.TransferEncoding) > 0 {
		t.Fatalf("net/http reads %v, %q", want.URL, want.TransferEncoding)
	}
}

// FuzzRequest holds plain requests against net/http: it takes them, and reads the
// same.
func FuzzRequest(f *testing.F) {
	f.Add("GET /a%20b?c HTTP/1.1\r\nHost: a.test\r\nx-a:  b\t\r\nX-A: c\r\nConnection: Close\r\nCookie: a=b\r\n\r\n")
	f.Add("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc")
	f.Add("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	f.Add("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n")
	var r Request
	f.Fuzz(func(t *testing.T, text string) {
		n, v := r.Parse([]byte(text))
		if v != Plain {
			if n != 0 {
				t.Fatalf("got %d bytes of a head that is not plain", n)
			}
			return
		}
		like(t, &r, text[:n])
		for i := range n {
			if _, v := r.Parse([]byte(text[:i])); v != Partial {
				t.Fatalf("got verdict %d of %d of %d bytes; want Partial", v, i, n)
			}
		}
	})
}

func TestResponse(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for text, want := range map[string]struct {
		verdict Verdict
		length  int64
		chunked bool
		close   bool
	}{
		ok + "Content-Length: 5\r\n\r\n":          {Plain, 5, false, false},
		ok + "Transfer-Encoding: Chunked\r\n\r\n": {Plain, -1, true, false},
		ok + "connection: x, CLOSE\r\n\r\n":       {Plain, -1, false, true},
		"HTTP/1.1 204\r\n\r\n":                    {Plain, -1, false, false},
		"HTTP/1.1 100 \r\n\r\n":                   {Plain, -1, false, false},
		ok:                                        {verdict: Partial},
		"HTTP/1.0 200 OK\r\n\r\n":                 {verdict: Odd},
		"HTTP/1.1 99 OK\r\n\r\n":                  {verdict: Odd},
		"HTTP/1.1 2000\r\n\r\n":                   {verdict: Odd},
		"HTTP/1.1  200 OK\r\n\r\n":                {verdict: Odd},
		"nonsense\r\n\r\n":                        {verdict: Odd},
		ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n":          {verdict: Odd},
		ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\n":                   {verdict: Odd},
		ok + "Content-Length: 5,5\r\n\r\n":                                      {verdict: Odd},
		ok + "Transfer-Encoding: gzip, chunked\r\n\r\n":                         {verdict: Odd},
		ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n": {verdict: Odd},
		ok + "Trailer: A\r\nTransfer-Encoding: chunked\r\n\r\n":                 {verdict: Odd},
		ok + "A: b\nC: d\r\n\r\n":                                               {verdict: Odd},
		ok + "A: b\r\n c\r\n\r\n":                                               {verdict: Odd},
	} {
		var r Response
		n, v := r.Parse([]byte(text))
		if v != want.verdict || v == Plain && (n != len(text) || r.Length != want.length || r.Chunked != want.chunked || r.Close != want.close) {
			t.Errorf("%q: got verdict %d, %d bytes, length %d, chunked %t, close %t; want %+v", text, v, n, r.Length, r.Chunked, r.Close, want)
		}
	}
}

// FuzzResponse holds plain answers, with their bodies, against net/http.
func FuzzResponse(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\nabc")
	f.Add("HTTP/1.1 404 \r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1 \r\nd\r\n0\r\nA: b\r\n\r\n")
	f.Add("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end")
	f.Fuzz(func(t *testing.T, text string) {
		var r Response
		n, v := r.Parse([]byte(text))
		if v != Plain || r.Status < 200 || r.Status == 204 || r.Status == 304 {
			return
		}
		want, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), &http.Request{Method: "GET"})
		if err != nil {
			t.Fatalf("net/http refuses what is plain: %v", err)
		}
		header := r.Header.Clone()
		if r.Close {
			delete(header, "Connection") // as net/http does
		}
		if want.StatusCode != r.Status || want.ContentLength != r.Length || want.Close != (r.Close || r.Length < 0 && !r.Chunked) || !cmp.Equal(want.Header, header) {
			t.Fatalf("got %d %v of length %d, close %t; want %v", r.Status, header, r.Length, r.Close, want)
		}
		wantBody, wantErr := io.ReadAll(want.Body)
		var b Body
		b.Reset(bufio.NewReader(iotest.OneByteReader(strings.NewReader(text[n:]))), r.Length, r.Chunked)
		body, err := io.ReadAll(&b)
		if err != nil { // it may be stricter, but gives nothing else
			if !bytes.HasPrefix(wantBody, body) && !bytes.HasPrefix(body, wantBody) {
				t.Fatalf("got %q, %v; net/http reads %q, %v", body, err, wantBody, wantErr)
			}
			return
		}
		if wantErr != nil || !bytes.Equal(body, wantBody) || !b.Ended() {
			t.Fatalf("got %q; net/http reads %q, %v", body, wantBody, wantErr)
		}
	})
}

func TestBody(t *testing.T) {
	const rest = "HTTP/1.1"
	tests := []struct {
		name, text string
		length     int64
		chunked    bool
		want       string
		err        error
	}{
		{"none", rest, 0, false, "", nil},
		{"length", "hello" + rest, 5, false, "hello", nil},
		{"short", "hell", 5, false, "hell", io.ErrUnexpectedEOF},
		{"to the end", "hello", -1, false, "hello", nil},
		{"chunks", "2\r\nhe\r\n03;a=b\r\nllo\r\n0\r\n\r\n" + rest, -1, true, "hello", nil},
		{"trailer", "5\r\nhello\r\n0\r\na: 1\r\nA: 2\r\n\r\n" + rest, -1, true, "hello", nil},
		{"half a chunk", "5\r\nhel", -1, true, "hel", io.ErrUnexpectedEOF},
		{"half a size", "5", -1, true, "", io.ErrUnexpectedEOF},
		{"no last chunk", "5\r\nhello\r\n", -1, true, "hello", io.ErrUnexpectedEOF},
		{"no end", "5\r\nhello\r\n0\r\n", -1, true, "hello", io.ErrUnexpectedEOF},
		{"longer than its size", "2\r\nhello\r\n", -1, true, "he", errChunk},
		{"bare line feed", "5\nhello\r\n0\r\n\r\n", -1, true, "", errChunk},
		{"no number", "x\r\n", -1, true, "", errChunk},
		{"empty size", "\r\n", -1, true, "", errChunk},
		{"signed", "+5\r\nhello\r\n", -1, true, "", errChunk},
		{"prefix", "0x5\r\nhello\r\n", -1, true, "", errChunk},
		{"huge", "1000000000000000\r\nhello\r\n", -1, true, "", errChunk},
		{"endless line", strings.Repeat("1", 10000), -1, true, "", errChunk},
		{"bad trailer", "0\r\nA b\r\n\r\n", -1, true, "", errChunk},
		{"endless trailer", "0\r\n" + strings.Repeat("A: b\r\n", 200), -1, true, "", errChunk},
	}
	for _, tt := range tests {
		for _, piece := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
			in := bufio.NewReader(piece(strings.NewReader(tt.text)))
			var b Body
			b.Reset(in, tt.length, tt.chunked)
			got, err := io.ReadAll(&b)
			if string(got) != tt.want || !errors.Is(err, tt.err) || b.Ended() != (tt.err == nil) {
				t.Errorf("%s: got %q, %v; want %q, %v", tt.name, got, err, tt.want, tt.err)
			}
			if left, _ := io.ReadAll(in); tt.err == nil && tt.name != "to the end" && string(left) != rest {
				t.Errorf("%s: left %q; want %q", tt.name, left, rest)
			}
		}
	}
	var b Body
	b.Reset(bufio.NewReader(strings.NewReader("0\r\na: 1\r\nA: 2\r\n\r\n")), -1, true)
	_, _ = io.ReadAll(&b)
	if want := (http.Header{"A": {"1", "2"}}); !cmp.Equal(b.Trailer, want) {
		t.Errorf("got trailer %v; want %v", b.Trailer, want)
	}
}

// TestBodyReadsWhatHasCome wants small chunks in one read, and no read to wait once
// it has something.
func TestBodyReadsWhatHasCome(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	go io.WriteString(w, "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n2\r")
	var b Body
	b.Reset(bufio.NewReader(r), -1, true)
	p := make([]byte, 10)
	if n, err := b.Read(p); err != nil || string(p[:n]) != "abc" {
		t.Errorf("got %q, %v; want abc", p[:n], err)
	}
}
