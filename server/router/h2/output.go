package h2

import (
	"encoding/binary"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"cupola/runtime/fault"
)

// output are frames that wait to be written, as they are sent; and the state of the
// client's decoder, which is that after all of them.
type output struct {
	next     []byte // nil while nothing waits
	flushing bool
	controls int // frames in next that are no answer
	encoder  *hpack.Encoder
	lower    map[string]string
	keys     []string
	date     []byte // as it was sent last
	dateAt   int64
}

// maxNext is how much may wait before answers wait themselves.
const maxNext = 64 << 10

// outputs are buffers for frames. A connection has none while nothing waits.
var outputs = sync.Pool{New: func() any { b := make([]byte, 0, maxNext/4); return &b }}

func (o *output) init() {
	o.encoder = hpack.NewEncoder((*blockWriter)(o))
	o.encoder.SetMaxDynamicTableSizeLimit(tableSize)
	o.lower = map[string]string{}
}

// blockWriter appends headers to what waits.
type blockWriter output

// Write appends p.
func (w *blockWriter) Write(p []byte) (int, error) {
	w.next = append(w.next, p...)
	return len(p), nil
}

const headerBytes = 9 // of a frame

func appendHeader(b []byte, length int, t http2.FrameType, flags http2.Flags, id uint32) []byte {
	if b == nil {
		fresh, _ := outputs.Get().(*[]byte)
		b = (*fresh)[:0]
	}
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(t), byte(flags))
	return appendUint32(b, id)
}

func appendUint32(b []byte, n uint32) []byte { return binary.BigEndian.AppendUint32(b, n) }

// greet sends our settings.
func (c *Conn) greet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	settings := []http2.Setting{
		{ID: http2.SettingMaxFrameSize, Val: maxFrame},
		{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
		{ID: http2.SettingMaxHeaderListSize, Val: uint32(c.config.MaxHeader)},
		{ID: http2.SettingInitialWindowSize, Val: streamWindow},
	}
	b := appendHeader(c.output.next, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		b = binary.BigEndian.AppendUint16(b, uint16(s.ID))
		b = appendUint32(b, s.Val)
	}
	c.output.next = b
	c.output.windowLocked(0, connWindow-defaultWindow)
}

func (o *output) pingLocked(data [8]byte) {
	o.next = append(appendHeader(o.next, len(data), http2.FramePing, http2.FlagPingAck, 0), data[:]...)
	o.controls++
}

func (o *output) windowLocked(id, more uint32) {
	o.next = appendUint32(appendHeader(o.next, 4, http2.FrameWindowUpdate, 0, id), more)
	o.controls++
}

// headLocked appends a head; a status of 0 is for trailers.
func (o *output) headLocked(id uint32, status int, h http.Header, end bool, peerMax int) {
	o.next = appendHeader(o.next, 0, http2.FrameHeaders, 0, id)
	begin := len(o.next)
	if status != 0 {
		o.field(":status", statusText(status))
	}
	o.keys = o.keys[:0]
	for key := range h {
		o.keys = append(o.keys, key)
	}
	slices.Sort(o.keys)
	for _, key := range o.keys {
		o.header(key, h[key])
	}
	if _, ok := h["Date"]; !ok && status >= 200 {
		o.field("date", o.now())
	}
	o.closeBlock(begin, end, peerMax)
}

// closeBlock completes the frame of a head that begins at an index, and splits it if it is too
// large for one.
func (o *output) closeBlock(begin int, end bool, peerMax int) {
	flags := http2.Flags(0)
	if end {
		flags = http2.FlagHeadersEndStream
	}
	length := len(o.next) - begin
	header := o.next[begin-headerBytes : begin]
	if length <= peerMax {
		header[0], header[1], header[2], header[4] = byte(length>>16), byte(length>>8), byte(length), byte(flags|http2.FlagHeadersEndHeaders)
		return
	}
	header[0], header[1], header[2], header[4] = byte(peerMax>>16), byte(peerMax>>8), byte(peerMax), byte(flags)
	id := binary.BigEndian.Uint32(header[5:])
	rest := slices.Clone(o.next[begin+peerMax:])
	o.next = o.next[:begin+peerMax]
	for len(rest) > 0 {
		n := min(len(rest), peerMax)
		flags = 0
		if n == len(rest) {
			flags = http2.FlagContinuationEndHeaders
		}
		o.next = append(appendHeader(o.next, n, http2.FrameContinuation, flags, id), rest[:n]...)
		rest = rest[n:]
	}
}

// header appends a header of an answer, unless it is of HTTP/1's connections.
func (o *output) header(key string, values []string) {
	name, ok := o.lower[key]
	if !ok {
		if name = strings.ToLower(key); !validName(name) {
			return
		}
		if len(o.lower) < maxNames && len(key) <= 64 {
			o.lower[strings.Clone(key)] = name
		}
	}
	switch name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return
	}
	for _, value := range values {
		if httpguts.ValidHeaderFieldValue(value) {
			o.field(name, value)
		}
	}
}

// field appends a field. What is different in each answer does not enter the table of
// headers, where it would push out the rest.
func (o *output) field(name, value string) {
	f := hpack.HeaderField{Name: name, Value: value}
	switch name {
	case "x-vcap-request-id", "content-length", "etag", "last-modified", "expires", "age", "set-cookie", "location", "content-range", "grpc-message":
		f.Sensitive = true
	}
	_ = o.encoder.WriteField(f) // blockWriter has no error
}

func statusText(status int) string {
	switch status {
	case 200:
		return "200"
	case 204:
		return "204"
	case 304:
		return "304"
	case 404:
		return "404"
	}
	return string([]byte{byte('0' + status/100%10), byte('0' + status/10%10), byte('0' + status%10)})
}

// now is the Date of an answer.
func (o *output) now() string {
	now := time.Now()
	if second := now.Unix(); second != o.dateAt {
		o.dateAt = second
		o.date = now.UTC().AppendFormat(o.date[:0], http.TimeFormat)
	}
	return string(o.date)
}

// kick has what waits written by another goroutine: the reading one never waits for the
// client to read.
func (c *Conn) kick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.output.asyncLocked(c)
}

func (o *output) asyncLocked(c *Conn) {
	if len(o.next) > 0 && !o.flushing && c.err == nil {
		fault.Go("router", c.flush)
	}
}

// flush writes all that waits, unless another goroutine does already.
func (c *Conn) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &c.output
	if o.flushing || len(o.next) == 0 || c.err != nil {
		return
	}
	o.flushing = true
	c.config.Busy()
	defer func() { // also after a panic
		o.flushing = false
		c.config.Quiet()
		c.closeLocked()
	}()
	c.unlocked(runtime.Gosched) // what can run has something for the same write
	for len(o.next) > 0 && c.err == nil {
		c.writeLocked()
	}
}

// closeLocked closes a connection that has nothing to do any more.
func (c *Conn) closeLocked() {
	if c.err == nil && c.doneLocked() {
		c.config.Ending()
		c.failLocked(errClosed)
	}
}

// unlocked calls f without the lock, which the caller has.
func (c *Conn) unlocked(f func()) {
	c.mu.Unlock()
	defer c.mu.Lock() // also after a panic
	f()
}

// writeLocked writes what waits.
func (c *Conn) writeLocked() {
	b := c.output.next
	c.output.next, c.output.controls = nil, 0
	var err error
	c.unlocked(func() { _, err = c.conn.Write(b) })
	if cap(b) <= 2*maxNext {
		b = b[:0]
		outputs.Put(&b)
	}
	if err != nil {
		c.failLocked(err)
	}
	c.wakeLocked()
}
