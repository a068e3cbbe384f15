package otlp

import (
	"crypto/rand"
	"encoding/hex"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// header is the HTTP header of W3C's trace context, in Go's canonical spelling.
const header = "Traceparent"

// place is a place in a trace.
type place struct {
	trace [16]byte
	span  [8]byte
}

// Begin samples a request with these headers, and returns the value of the header Traceparent for
// what the request leads to: with the trace of its client if that one is sampled,
// and with a new one for some of those that have none. "" is a request that is not
// sampled.
func (e *Exporter) Begin(h http.Header) string {
	c, sampled, ok := parse(h[header])
	switch {
	case ok && sampled:
	case ok || !e.chosen():
		return ""
	default:
		_, _ = rand.Read(c.trace[:])
	}
	_, _ = rand.Read(c.span[:])
	return c.header()
}

// Child returns the place of a new span in the trace of parent, a sampled one that Begin or Child returned.
func Child(parent string) string {
	c, _, _ := parse([]string{parent})
	_, _ = rand.Read(c.span[:])
	return c.header()
}

// header is the value of the header of what happens at a place, which is sampled.
func (c place) header() string {
	return "00-" + hex.EncodeToString(c.trace[:]) + "-" + hex.EncodeToString(c.span[:]) + "-01"
}

// chosen picks the part of requests without a trace that is sampled.
func (e *Exporter) chosen() bool { return e.Sample > 0 && mathrand.Float64() < e.Sample }

// parse reads a traceparent: version, trace, parent and flags in lower-case hex. A
// later version may have more behind it.
func parse(values []string) (c place, sampled, ok bool) {
	const length = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	if len(values) != 1 || len(values[0]) < length {
		return c, false, false
	}
	text := values[0]
	version := text[:2]
	if version == "ff" || len(text) > length && (version == "00" || text[length] != '-') || strings.ToLower(text[:length]) != text[:length] ||
		text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return c, false, false
	}
	var head, flags [1]byte
	for _, field := range []struct {
		into []byte
		text string
	}{{head[:], version}, {c.trace[:], text[3:35]}, {c.span[:], text[36:52]}, {flags[:], text[53:55]}} {
		if _, err := hex.Decode(field.into, []byte(field.text)); err != nil {
			return place{}, false, false
		}
	}
	if c.trace == [16]byte{} || c.span == [8]byte{} {
		return place{}, false, false
	}
	return c, flags[0]&1 == 1, true
}

// Span is a request that is over, or a part of the daemon's work.
type Span struct {
	Trace        string      // what Begin or Child returned
	Request      http.Header // nil: it is not a request
	Parent       string      // of what is not a request: where in the trace it belongs; "" for a span without a parent
	Name         string
	Began, Ended time.Time
	Status       int    // of a request, in HTTP's numbers; 0: none was sent
	Failure      string // of what is not a request: why it failed; "": it did not
	// Text are further attributes by their names; empty ones are left out.
	Text map[string]string
}

// Record sends a span of a sampled trace with the next ones.
func (e *Exporter) Record(s Span) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.spans) >= maxSpans {
		e.dropped++
		return
	}
	e.spans = append(e.spans, s.message())
}

// Of a span.
const (
	kindInternal = 1
	kindServer   = 2
	codeError    = 2
	// maxText is how many bytes of a text of the client's are sent: anybody may have
	// a request traced, and spans wait in memory.
	maxText = 1 << 10
)

// message is the span as OTLP has it, with the words of OpenTelemetry's conventions
// for HTTP servers: an answer of 500 or more, or none, is an error.
func (s Span) message() message {
	own, _, _ := parse([]string{s.Trace})
	m := message(nil).bytes(1, own.trace[:]).bytes(2, own.span[:])
	above, kind := []string{s.Parent}, uint64(kindInternal)
	if s.Request != nil {
		above, kind = s.Request[header], kindServer
	}
	if parent, _, ok := parse(above); ok {
		m = m.bytes(4, parent.span[:])
	}
	m = m.text(5, short(s.Name)).varint(6, kind).fixed(7, nano(s.Began)).fixed(8, nano(s.Ended))
	for name, value := range s.Text {
		if value != "" {
			m = m.bytes(9, pair(name, short(value)))
		}
	}
	if s.Failure != "" {
		return m.bytes(15, message(nil).text(2, short(s.Failure)).varint(3, codeError))
	}
	if s.Request == nil {
		return m
	}
	if s.Status > 0 {
		m = m.bytes(9, message(nil).text(1, "http.response.status_code").bytes(2, message(nil).varint(3, uint64(s.Status))))
	}
	if s.Status == 0 || s.Status >= http.StatusInternalServerError {
		m = m.bytes(15, message(nil).varint(3, codeError))
	}
	return m
}

// short is the beginning of a text.
func short(text string) string { return text[:min(len(text), maxText)] }

// nano is a time as OTLP has it: nanoseconds since 1970.
func nano(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }
