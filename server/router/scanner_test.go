package router

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// refuses feeds text to a scanner in pieces of step bytes.
func refuses(text string, step int) (s scanner, refused bool) {
	for rest := []byte(text); len(rest) > 0; {
		n := min(step, len(rest))
		if _, ok := s.feed(rest[:n]); !ok {
			return s, true
		}
		rest = rest[n:]
	}
	return s, false
}

func TestScanner(t *testing.T) {
	const (
		get   = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
		bad   = "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"
		post  = "POST / HTTP/1.1\r\nHost: a\r\n"
		chunk = post + "Transfer-Encoding: chunked\r\n\r\n"
	)
	tests := []struct {
		name, text string
		want       bool
	}{
		{"plain", get, false},
		{"bare line feeds", "GET / HTTP/1.1\nHost: a\n\n", false},
		{"pipelined", get + get, false},
		{"bad one", bad, true},
		{"bad one pipelined", get + bad, true},
		{"bad one after a body", post + "Content-Length: 5\r\n\r\nhello" + bad, true},
		{"bad one after an empty line", post + "Content-Length: 5\r\n\r\nhello\r\n" + bad, true},
		{"bad one within a body", post + "Content-Length: 200\r\n\r\n" + bad, false},
		{"bad one after chunks", chunk + "5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n" + bad, true},
		{"bad one after trailers", chunk + "0\r\nA: b\r\nC: d\r\n\r\n" + bad, true},
		{"bad one within chunks", chunk + "fF\r\n" + bad, false},
		{"length and chunks", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"chunks and length", post + "transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n", true},
		{"two lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", true},
		{"list of lengths", post + "Content-Length: 5, 5\r\n\r\n", true},
		{"signed length", post + "Content-Length: +5\r\n\r\n", true},
		{"empty length", post + "Content-Length:\r\n\r\n", true},
		{"huge length", post + "Content-Length: 99999999999999999999\r\n\r\n", true},
		{"space before the colon", post + "Content-Length : 5\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"two encodings", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"other encoding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n", true},
		{"odd encoding", post + "Transfer-Encoding: xchunked\r\n\r\n", true},
		{"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"folded header", post + "A: b\r\n c\r\n\r\n", true},
		{"folded header, tab", post + "A: b\r\n\tc: d\r\n\r\n", true},
		{"space before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", true},
		{"http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bad, false},
	}
	for _, tt := range tests {
		for _, step := range []int{1, 2, 3, 7, len(tt.text)} {
			if _, got := refuses(tt.text, step); got != tt.want {
				t.Errorf("%s, in pieces of %d: refused %t; want %t", tt.name, step, got, tt.want)
			}
		}
	}
}

// FuzzScanner holds the scanner against itself on pieces of other sizes, and
// against net/http on where requests end.
func FuzzScanner(f *testing.F) {
	f.Add("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a\r\nhello\r\n0\r\nA: b\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 3)
	f.Add("POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabcGET /x HTTP/1.1\nHost: a\n\n", 1)
	f.Fuzz(func(t *testing.T, text string, step int) {
		whole, refused := refuses(text, max(len(text), 1))
		if _, again := refuses(text, max(step, 1)); again != refused {
			t.Fatalf("refused %t as a whole, %t in pieces of %d", refused, again, step)
		}
		if refused || whole.state == gaveUp || !wellFormed(text) {
			return
		}
		if whole.state != inHead || len(whole.head) != 0 {
			t.Fatalf("net/http is at the end of a request, the scanner is in state %d with %q", whole.state, whole.head)
		}
	})
}

// wellFormed reports whether net/http reads text as requests, to its very end.
func wellFormed(text string) bool {
	r := bufio.NewReader(strings.NewReader(text))
	for n := 0; ; n++ {
		if _, err := r.Peek(1); err == io.EOF {
			return n > 0
		}
		req, err := http.ReadRequest(r)
		if err != nil {
			return false
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return false
		}
	}
}

func TestHeadEnd(t *testing.T) {
	for text, want := range map[string]int{"": 0, "\n": 0, "a\r\n": 0, "a\r\n\r": 0, "a\r\n\r\nb": 5, "a\n\nb": 3, "a\n\r\nb": 4, "a\r\n\r\r\n": 0} {
		if got := headEnd([]byte(text), 0); got != want {
			t.Errorf("%q: got %d; want %d", text, got, want)
		}
	}
	if got := headEnd(bytes.Repeat([]byte("a\r\n"), 100), 0); got != 0 {
		t.Errorf("got %d; want no end", got)
	}
}
