package wire

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// Verdict is what a parser found.
type Verdict int

// The verdicts.
const (
	Partial Verdict = iota // the head has not ended
	Plain                  // it was read
	Odd                    // net/http has to read it
)

// Head is a parsed head. Parsing reuses its maps and slices; the strings in them
// stay valid.
type Head struct {
	Header http.Header
	Hop    bool // it has headers of the connection alone

	fields []field
	values []string
	names  []name // of the head before, by the line
}

// field is where a line's name and value are in a head.
type field struct{ name, nameEnd, value, valueEnd int }

// The classes of bytes.
const (
	inToken  = 1 << iota // a name or method
	inValue              // a header's value
	inTarget             // a path and query
	inHost
)

var classes = classify()

func classify() (t [256]uint8) {
	for c := range 256 {
		b := byte(c)
		letter := 'a' <= b|0x20 && b|0x20 <= 'z' || '0' <= b && b <= '9'
		if letter || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0 {
			t[b] |= inToken
		}
		if b == '\t' || b >= ' ' && b != 0x7f {
			t[b] |= inValue
		}
		if b > ' ' && b < 0x7f && b != '#' {
			t[b] |= inTarget
		}
		if letter || strings.IndexByte("-._:", b) >= 0 {
			t[b] |= inHost
		}
	}
	return t
}

func all(p []byte, class uint8) bool {
	for _, c := range p {
		if classes[c]&class == 0 {
			return false
		}
	}
	return true
}

// line is the line at p's begin, and the length of it with its end. Only CR LF
// ends a line.
func line(p []byte) (text []byte, n int, v Verdict) {
	i := bytes.IndexByte(p, '\n')
	switch {
	case i < 0:
		return nil, 0, Partial
	case i == 0 || p[i-1] != '\r':
		return nil, 0, Odd
	}
	return p[:i-1], i + 1, Plain
}

// maxFields is how many headers a plain head has at most. Their storage lasts as long as
// the connection.
const maxFields = 64

// scan finds the headers of a head from index from, to the empty line. It returns
// where the head ends.
func (h *Head) scan(p []byte, from int) (end int, v Verdict) {
	h.fields = h.fields[:0]
	for {
		text, n, v := line(p[from:])
		if v != Plain {
			return 0, v
		}
		if len(text) == 0 {
			return from + n, Plain
		}
		f, ok := split(text)
		if !ok || len(h.fields) == maxFields {
			return 0, Odd
		}
		h.fields = append(h.fields, field{from + f.name, from + f.nameEnd, from + f.value, from + f.valueEnd})
		from += n
	}
}

// split finds name and value of a header's line.
func split(text []byte) (f field, ok bool) {
	colon := bytes.IndexByte(text, ':')
	if colon <= 0 || !all(text[:colon], inToken) || !all(text[colon+1:], inValue) {
		return f, false
	}
	value, end := colon+1, len(text)
	for value < end && (text[value] == ' ' || text[value] == '\t') {
		value++
	}
	for end > value && (text[end-1] == ' ' || text[end-1] == '\t') {
		end--
	}
	return field{0, colon, value, end}, true
}

// reset empties the head for another.
func (h *Head) reset() {
	if h.Header == nil {
		h.Header = make(http.Header, 16)
	}
	clear(h.Header)
	h.Hop, h.values = false, h.values[:0]
}

// name is a header's name as it was sent, and in Go's canonical spelling.
type name struct{ sent, key string }

// key is the name of field i in Go's canonical spelling. On a connection most heads have
// the same names in the same lines.
func (h *Head) key(text string, i int) string {
	sent := text[h.fields[i].name:h.fields[i].nameEnd]
	if i == len(h.names) {
		h.names = append(h.names, name{})
	}
	n := &h.names[i]
	if n.sent != sent {
		sent = strings.Clone(sent) // not the whole text
		*n = name{sent, textproto.CanonicalMIMEHeaderKey(sent)}
	}
	return n.key
}

// hop reports whether a name is of a header of the connection alone.
func hop(key string) bool {
	switch key {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// add adds a value to the header.
func (h *Head) add(key, value string) {
	h.Hop = h.Hop || hop(key)
	if have, ok := h.Header[key]; ok {
		h.Header[key] = append(have, value)
		return
	}
	h.values = append(h.values, value)
	n := len(h.values)
	h.Header[key] = h.values[n-1 : n : n]
}

// length reads a Content-Length.
func length(value string) (n int64, ok bool) {
	if value == "" || len(value) > 18 {
		return 0, false
	}
	for i := range len(value) {
		c := value[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// pragma reports whether net/http would add a Cache-Control for a Pragma.
func pragma(h http.Header) bool { return h["Pragma"] != nil && h["Cache-Control"] == nil }
