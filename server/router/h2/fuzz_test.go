package h2

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// script is a connection on which a client says something, reads nothing, and leaves.
type script struct {
	net.Conn
	in  *bytes.Reader
	mu  sync.Mutex
	out bytes.Buffer
}

func (s *script) Read(p []byte) (int, error) { return s.in.Read(p) }

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *script) Close() error                     { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// frames builds what a client sends.
func frames(build func(f *http2.Framer, head func(lines ...hpack.HeaderField) []byte)) []byte {
	var out, block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	f := http2.NewFramer(&out, nil)
	f.AllowIllegalWrites = true
	build(f, func(fields ...hpack.HeaderField) []byte {
		block.Reset()
		for _, field := range append([]hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: "a"}}, fields...) {
			_ = encoder.WriteField(field)
		}
		return bytes.Clone(block.Bytes())
	})
	return out.Bytes()
}

// FuzzFrames feeds a connection with frames, good and bad. Whatever comes, all requests end, and
// what is sent are frames that a client can read.
func FuzzFrames(f *testing.F) {
	f.Add(frames(func(w *http2.Framer, head func(...hpack.HeaderField) []byte) {
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head(), EndHeaders: true})
		_ = w.WriteDataPadded(1, false, []byte("hello"), make([]byte, 3))
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: head(hpack.HeaderField{Name: "content-length", Value: "0"}), EndHeaders: true, EndStream: true})
		_ = w.WriteData(1, true, nil)
	}))
	f.Add(frames(func(w *http2.Framer, head func(...hpack.HeaderField) []byte) {
		block := head(hpack.HeaderField{Name: "te", Value: "trailers"}, hpack.HeaderField{Name: "expect", Value: "100-continue"})
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:5]})
		_ = w.WriteContinuation(1, true, block[5:])
		_ = w.WritePing(false, [8]byte{})
		_ = w.WriteWindowUpdate(1, 100)
		_ = w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x40, 1, 'a', 1, 'b'}, EndHeaders: true, EndStream: true})
		_ = w.WriteRSTStream(1, http2.ErrCodeCancel)
		_ = w.WriteGoAway(0, http2.ErrCodeNo, nil)
	}))
	f.Fuzz(func(t *testing.T, sent []byte) {
		var settings bytes.Buffer
		_ = http2.NewFramer(&settings, nil).WriteSettings()
		conn := &script{in: bytes.NewReader(append(append([]byte(http2.ClientPreface), settings.Bytes()...), sent...))}
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
		})
		c := New(conn, nil, &Config{
			Serve: func(s *Stream) {
				if _, ok := s.Small(nil, 0); ok {
					echo(s)
				} else {
					s.ServeHTTP(t.Context(), Origin{}, handler)
				}
			},
			Busy: func() {}, Quiet: func() {}, Ending: func() {}, Stalled: func() {},
			Head: time.Minute, Idle: time.Minute, Progress: time.Minute, MaxHeader: 1 << 10,
		})
		c.Run()
		eventually(t, "the end of all requests", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.serving == 0 && !c.output.flushing
		})
		conn.mu.Lock()
		defer conn.mu.Unlock()
		in := http2.NewFramer(io.Discard, &conn.out)
		in.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
		for {
			if _, err := in.ReadFrame(); err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatalf("what was sent is malformed: %v", err)
				}
				return
			}
		}
	})
}
