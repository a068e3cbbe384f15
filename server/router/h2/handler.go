package h2

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"

	"cupola/runtime/fault"
)

// Origin is where the requests of a connection come from.
type Origin struct {
	Remote string               // the client's address
	TLS    *tls.ConnectionState // nil: without TLS
}

// ServeHTTP answers the request by a handler, as net/http's server does.
func (s *Stream) ServeHTTP(ctx context.Context, o Origin, h http.Handler) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := s.request(ctx, o)
	if err != nil {
		s.Reset(http2.ErrCodeProtocol)
		return
	}
	w := newWriter(s, req)
	s.OnGone(cancel)
	defer s.OnGone(nil)
	defer func() { // an aborted answer is no fault; finish resets it
		if v := recover(); v != nil && v != http.ErrAbortHandler { //nolint:errorlint // net/http compares so
			panic(v)
		}
	}()
	defer w.stop()
	h.ServeHTTP(w, req)
	w.end()
}

// request is the request as net/http has it.
func (s *Stream) request(ctx context.Context, o Origin) (*http.Request, error) {
	req := &http.Request{
		Method: s.Method, Host: s.Host, RequestURI: s.Path, Header: http.Header{}, ContentLength: s.Length, Body: http.NoBody,
		Proto: "HTTP/2.0", ProtoMajor: 2, RemoteAddr: o.Remote, TLS: o.TLS,
	}
	for _, f := range s.Fields {
		req.Header[f.Key] = append(req.Header[f.Key], f.Value)
	}
	delete(req.Header, "Host")
	if s.Method == http.MethodConnect {
		req.URL, req.RequestURI = &url.URL{Host: s.Host}, s.Host
	} else {
		target, err := url.ParseRequestURI(s.Path)
		if err != nil {
			return nil, err
		}
		req.URL = target
	}
	continues := httpguts.HeaderValuesContainsToken(req.Header["Expect"], "100-continue")
	if continues {
		delete(req.Header, "Expect")
	}
	if cookies := req.Header["Cookie"]; len(cookies) > 1 {
		req.Header["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	req.Trailer = announced(req.Header)
	delete(req.Header, "Trailer")
	if !s.bodyless {
		req.Body = &requestBody{stream: s, request: req, trailer: req.Trailer, continues: continues}
	}
	return req.WithContext(ctx), nil
}

// announced are the trailers that a header announces.
func announced(h http.Header) (trailer http.Header) {
	for _, value := range h["Trailer"] {
		for name := range strings.SplitSeq(value, ",") {
			switch key := textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)); key {
			case "Transfer-Encoding", "Trailer", "Content-Length":
			default:
				if trailer == nil {
					trailer = http.Header{}
				}
				trailer[key] = nil
			}
		}
	}
	return trailer
}

// requestBody is the body of a request.
type requestBody struct {
	stream    *Stream
	request   *http.Request
	trailer   http.Header // of the request, filled at the end
	continues bool        // the client waits for a 100
}

// errBodyClosed is met by reads after Close.
var errBodyClosed = errors.New("the request's body is closed")

// Read reads on.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.continues {
		b.continues = false
		if err := b.stream.inform(http.StatusContinue, nil); err != nil && !errors.Is(err, errEnded) {
			return 0, err
		}
	}
	n, err := b.stream.Read(p)
	if err == io.EOF && len(b.trailer) > 0 {
		for _, f := range b.stream.Trailer() {
			if _, ok := b.trailer[f.Key]; ok {
				b.trailer[f.Key] = append(b.trailer[f.Key], f.Value)
			}
		}
		b.trailer = nil
	}
	return n, err
}

// Close ends reads.
func (b *requestBody) Close() error {
	b.stream.endRead(errBodyClosed)
	return nil
}

// inform sends an answer of 1xx.
func (s *Stream) inform(status int, h http.Header) error {
	if err := s.WriteHead(status, h, false); err != nil {
		return err
	}
	return s.Flush()
}

// writer is the ResponseWriter of a stream.
type writer struct {
	stream  *Stream
	request *http.Request
	header  http.Header

	status   int         // 0: WriteHeader was not called
	sent     http.Header // as it was then
	begun    bool        // the head was sent
	over     bool        // the handler has returned
	buffer   []byte
	length   int64 // as it was declared; -1: it was not
	written  int64
	trailers []string // that were declared

	mu          sync.Mutex
	read, write *time.Timer // deadlines
}

// writerBytes is how much of an answer is kept until it is sent.
const writerBytes = 4 << 10

func newWriter(s *Stream, req *http.Request) *writer {
	return &writer{stream: s, request: req, header: http.Header{}, length: -1}
}

// Header is the answer's, and its trailers.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader sends the header with the first part of the body. A status of 1xx is sent at
// once.
func (w *writer) WriteHeader(status int) {
	switch {
	case w.status != 0:
		return
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %d", status))
	case status < 200:
		h := w.header.Clone()
		h.Del("Content-Length")
		_ = w.stream.inform(status, h) // the answer meets the error again
		return
	}
	w.status, w.sent = status, w.header.Clone()
	if text := w.sent.Get("Content-Length"); text != "" {
		if n, err := strconv.ParseUint(text, 10, 63); err == nil {
			w.length = int64(n)
		} else {
			w.sent.Del("Content-Length")
		}
	}
}

// Write writes a part of the body.
func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !hasBody(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if w.written += int64(len(p)); w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if len(w.buffer)+len(p) <= writerBytes {
		w.buffer = append(w.buffer, p...)
		return len(p), nil
	}
	if err := w.send(p); err != nil {
		return 0, err
	}
	return len(p), w.stream.Flush()
}

// WriteString writes a part of the body.
func (w *writer) WriteString(text string) (int, error) { return w.Write([]byte(text)) }

// hasBody reports whether an answer may have a body.
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// send sends what was kept, and more of the body.
func (w *writer) send(more []byte) error {
	first := w.buffer
	if len(first) == 0 {
		first = more
	}
	if !w.begun {
		w.begun = true
		end := w.request.Method == http.MethodHead || w.over && len(first) == 0 && !w.hasTrailers()
		if err := w.sendHead(first, end); err != nil || end {
			return err
		}
	}
	kept := w.buffer
	w.buffer = w.buffer[:0]
	if w.request.Method == http.MethodHead {
		return nil
	}
	if len(kept) > 0 {
		if err := w.stream.WriteData(kept, false); err != nil {
			return err
		}
	}
	if len(more) > 0 {
		return w.stream.WriteData(more, false)
	}
	return nil
}

// sendHead sends the head, and completes it: first is where the body begins.
func (w *writer) sendHead(first []byte, end bool) error {
	h, head := w.sent, w.request.Method == http.MethodHead
	if h["Content-Length"] == nil && w.over && hasBody(w.status) && (len(first) > 0 || !head) {
		h["Content-Length"] = []string{strconv.Itoa(len(first))}
	}
	if _, typed := h["Content-Type"]; !typed && h.Get("Content-Encoding") == "" && hasBody(w.status) && len(first) > 0 {
		h["Content-Type"] = []string{http.DetectContentType(first)}
	}
	for _, value := range h["Trailer"] {
		for name := range strings.SplitSeq(value, ",") {
			w.declare(textproto.TrimString(name))
		}
	}
	if h.Get("Connection") == "close" {
		w.stream.conn.Shutdown()
	}
	return w.stream.WriteHead(w.status, h, end)
}

func (w *writer) declare(name string) {
	key := http.CanonicalHeaderKey(name)
	if httpguts.ValidTrailerHeader(key) && !slices.Contains(w.trailers, key) {
		w.trailers = append(w.trailers, key)
	}
}

// promote declares the trailers that were set by their prefix.
func (w *writer) promote() {
	for key, values := range w.header {
		if name, ok := strings.CutPrefix(key, http.TrailerPrefix); ok {
			w.declare(name)
			w.header[http.CanonicalHeaderKey(name)] = values
		}
	}
}

func (w *writer) hasTrailers() bool {
	return slices.ContainsFunc(w.trailers, func(key string) bool { return len(w.header[key]) > 0 })
}

// end ends the answer after the handler has returned.
func (w *writer) end() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.over = true
	w.promote()
	if w.length > w.written && hasBody(w.status) && w.request.Method != http.MethodHead {
		w.stream.Reset(http2.ErrCodeInternal)
		return
	}
	if err := w.send(nil); err != nil {
		return // the client is gone
	}
	if w.hasTrailers() && w.request.Method != http.MethodHead {
		trailer := http.Header{}
		for _, key := range w.trailers {
			trailer[key] = w.header[key]
		}
		_ = w.stream.WriteTrailer(trailer) // likewise
	} else {
		_ = w.stream.WriteData(nil, true) // likewise, or it has ended with its head
	}
}

// Flush sends what was written.
func (w *writer) Flush() { _ = w.FlushError() } // the next write meets the error again

// FlushError sends what was written.
func (w *writer) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if err := w.send(nil); err != nil && !errors.Is(err, errEnded) {
		return err
	}
	return w.stream.Flush()
}

// EnableFullDuplex is always so.
func (w *writer) EnableFullDuplex() error { return nil }

// SetReadDeadline ends reads of the body at a time; zero is never. A deadline that has passed
// ends all reads.
func (w *writer) SetReadDeadline(t time.Time) error {
	w.arm(&w.read, t, func() { w.stream.endRead(errDeadline) })
	return nil
}

// SetWriteDeadline breaks the answer off at a time; zero is never.
func (w *writer) SetWriteDeadline(t time.Time) error {
	w.arm(&w.write, t, func() { w.stream.Reset(http2.ErrCodeInternal) })
	return nil
}

// arm has f called at a time, in place of what was to be called before.
func (w *writer) arm(timer **time.Timer, t time.Time, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if *timer != nil {
		(*timer).Stop()
		*timer = nil
	}
	switch left := time.Until(t); {
	case t.IsZero():
	case left <= 0:
		f()
	default:
		*timer = time.AfterFunc(left, fault.Func("router", f))
	}
}

// stop ends deadlines.
func (w *writer) stop() {
	w.arm(&w.read, time.Time{}, nil)
	w.arm(&w.write, time.Time{}, nil)
}

// refuse answers a request whose head is not served.
func (s *Stream) refuse() {
	text := strconv.Itoa(s.refused) + " " + http.StatusText(s.refused) + "\n"
	h := http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}, "Content-Length": {strconv.Itoa(len(text))}}
	head := s.Method == http.MethodHead
	if s.WriteHead(s.refused, h, head) == nil && !head {
		_ = s.WriteData([]byte(text), true) // the client is gone
	}
}
