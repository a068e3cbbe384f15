package h2

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"cupola/server/router/wire"
)

// headReader takes the head of a request, or its trailers, one field at a time.
type headReader struct {
	limit int

	id     uint32
	last   bool // no body follows
	open   bool // CONTINUATION follows
	bytes  int  // as they came
	size   int
	fields []hpack.HeaderField // without pseudo-headers
	pseudo [pseudos]string
	given  [pseudos]bool
	status int  // that it is refused with; 0: it is not
	broken bool // it is malformed (RFC 9113, 8.1.1)
}

// The pseudo-headers of a request.
const (
	method = iota
	scheme
	authority
	path
	pseudos
)

var pseudoNames = [pseudos]string{":method", ":scheme", ":authority", ":path"}

func (h *headReader) begin(id uint32, last bool) {
	*h = headReader{limit: h.limit, fields: h.fields[:0], id: id, last: last}
}

// field takes the next field.
func (h *headReader) field(f hpack.HeaderField) {
	h.size += int(f.Size())
	switch {
	case h.size > h.limit:
		h.status = http.StatusRequestHeaderFieldsTooLarge
	case strings.HasPrefix(f.Name, ":"):
		h.takePseudo(f)
	case !validName(f.Name) || !httpguts.ValidHeaderFieldValue(f.Value):
		h.broken = true
	default:
		if (ofConnection(f) || f.Name == "te" && slices.ContainsFunc(h.fields, func(other hpack.HeaderField) bool { return other.Name == "te" })) && h.status == 0 {
			h.status = http.StatusBadRequest
		}
		h.fields = append(h.fields, f)
	}
}

func (h *headReader) takePseudo(f hpack.HeaderField) {
	i := slices.Index(pseudoNames[:], f.Name)
	if i < 0 || h.given[i] || len(h.fields) > 0 || !httpguts.ValidHeaderFieldValue(f.Value) {
		h.broken = true
		return
	}
	h.given[i], h.pseudo[i] = true, f.Value
}

// validName reports whether a name is a token in lower case.
func validName(name string) bool {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' || !httpguts.IsTokenRune(rune(c)) {
			return false
		}
	}
	return name != ""
}

// ofConnection reports whether a header is of HTTP/1's connections (RFC 9113, 8.2.2).
func ofConnection(f hpack.HeaderField) bool {
	switch f.Name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return true
	case "te":
		return f.Value != "trailers"
	}
	return false
}

// request reports whether the head is a request's: what it must have, it has.
func (h *headReader) request() bool {
	p := &h.pseudo
	if h.broken || !httpguts.ValidHeaderFieldName(p[method]) || strings.Contains(p[authority], "@") {
		return false
	}
	if p[method] == http.MethodConnect {
		return !h.given[path] && !h.given[scheme] && p[authority] != ""
	}
	return p[path] != "" && (p[scheme] == "http" || p[scheme] == "https")
}

// host is the host that the request is for, which may be given twice; false if it is not the
// same.
func (h *headReader) host() (host string, ok bool) {
	host, ok = h.pseudo[authority], true
	given := h.given[authority]
	for _, f := range h.fields {
		if f.Name != "host" {
			continue
		}
		ok = ok && (!given || strings.EqualFold(host, f.Value))
		if !given {
			host, given = f.Value, true
		}
	}
	return host, ok
}

// length is that of the body; -1 if it is unknown.
func (h *headReader) length() (n int64, ok bool) {
	n, ok = -1, true
	for _, f := range h.fields {
		if f.Name != "content-length" {
			continue
		}
		m, err := strconv.ParseUint(f.Value, 10, 63)
		ok = ok && n < 0 && err == nil
		n = int64(m)
	}
	if h.last {
		ok = ok && n <= 0
		n = 0
	}
	return n, ok
}

// maxNames is how many names a connection keeps the canonical spelling of.
const maxNames = 128

// canonical is a name in Go's canonical spelling.
func (i *input) canonical(name string) string {
	key, ok := i.names[name]
	if !ok {
		key = http.CanonicalHeaderKey(name)
		if len(i.names) < maxNames && len(name) <= 64 {
			i.names[name] = key
		}
	}
	return key
}

// keyed are the fields with canonical names.
func (i *input) keyed(fields []hpack.HeaderField) []wire.Field {
	keyed := make([]wire.Field, len(fields))
	for n, f := range fields {
		keyed[n] = wire.Field{Key: i.canonical(f.Name), Value: f.Value}
	}
	return keyed
}

func (c *Conn) beginHead(f *http2.HeadersFrame) error {
	c.input.head.begin(f.StreamID, f.StreamEnded())
	return c.takeBlock(f.HeaderBlockFragment(), f.HeadersEnded())
}

func (c *Conn) continueHead(f *http2.ContinuationFrame) error {
	if len(f.HeaderBlockFragment()) == 0 {
		c.mu.Lock()
		err := c.waste(resetPrice)
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return c.takeBlock(f.HeaderBlockFragment(), f.HeadersEnded())
}

// takeBlock takes a part of a head.
func (c *Conn) takeBlock(block []byte, ended bool) error {
	h := &c.input.head
	h.open = !ended
	if h.bytes += len(block); h.bytes > 2*h.limit {
		return errCalm
	}
	if _, err := c.input.decoder.Write(block); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	if !ended {
		return nil
	}
	if err := c.input.decoder.Close(); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	c.input.decoded = true
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.takeHead(h); err != nil {
		return err
	}
	return c.checkLocked()
}

// takeHead begins a request, or ends one with trailers.
func (c *Conn) takeHead(h *headReader) error {
	s := c.streams[h.id]
	switch {
	case h.id%2 == 0:
		return errProtocol
	case s != nil:
		return c.takeTrailer(s, h)
	case h.id <= c.lastID && slices.Contains(c.reset, h.id):
		return c.waste(1) // was sent before the client knew
	case h.id <= c.lastID:
		return http2.ConnectionError(http2.ErrCodeStreamClosed)
	case c.leaving:
		return nil // the client knows that it has to send the request again
	}
	c.lastID = h.id
	length, ok := h.length()
	if !h.request() && h.status != http.StatusRequestHeaderFieldsTooLarge || !ok {
		return http2.StreamError{StreamID: h.id, Code: http2.ErrCodeProtocol}
	}
	if len(c.streams) >= maxStreams || c.serving >= maxStreams { // also those that were reset and go on
		if err := c.waste(1); err != nil {
			return err
		}
		return http2.StreamError{StreamID: h.id, Code: http2.ErrCodeRefusedStream}
	}
	c.budget.earn()
	c.open(h, length)
	return nil
}

// open begins a request.
func (c *Conn) open(h *headReader, length int64) {
	host, ok := h.host()
	if !ok && h.status == 0 {
		h.status = http.StatusBadRequest
	}
	p := &h.pseudo
	s := &Stream{
		Method: p[method], Scheme: p[scheme], Host: host, Path: p[path], Length: length, Fields: c.input.keyed(h.fields),
		conn: c, id: h.id, ended: h.last, bodyless: h.last, refused: h.status, window: c.initial, credit: credit{size: streamWindow, left: streamWindow},
	}
	s.cond.L = &c.mu
	c.streams[h.id] = s
	c.serving++
	workers.serve(s)
}

func (c *Conn) takeTrailer(s *Stream, h *headReader) error {
	switch {
	case s.ended:
		return http2.StreamError{StreamID: h.id, Code: http2.ErrCodeStreamClosed}
	case !h.last || h.broken || h.status != 0 || h.given != [pseudos]bool{}, s.Length >= 0 && s.came < s.Length:
		return http2.StreamError{StreamID: h.id, Code: http2.ErrCodeProtocol}
	}
	s.trailer = c.input.keyed(h.fields)
	c.endLocked(s)
	s.cond.Broadcast()
	return nil
}
