package h2

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"cupola/runtime/fault"
	"cupola/server/router/wire"
)

// Stream is a request and its answer. Its methods may be called by one goroutine that
// reads and one that writes.
type Stream struct {
	Method string
	Scheme string // "" for CONNECT
	Host   string // of :authority or Host
	Path   string // with the query; "" for CONNECT
	Length int64  // of the body; -1 if it is unknown
	Fields []wire.Field

	conn     *Conn
	id       uint32
	bodyless bool // the request ended with its head
	refused  int  // the status of the answer that is given without Config.Serve; 0: none

	// These are guarded by conn.mu, and changes are signalled on cond.
	cond     sync.Cond
	body     body
	came     int64 // of the body
	trailer  []wire.Field
	ended    bool // the client has sent all
	readErr  error
	credit   credit // of the body
	window   int64  // that we may send
	sending  bool   // it waits to send
	answered bool   // all of the answer waits to be written, or was
	err      error  // the stream was reset, or the connection ended
	gone     func() // see OnGone
}

// errReset is what a stream meets that the client has reset.
var errReset = errors.New("the client has cancelled the request")

// errEnded is met by writes after the end of the answer.
var errEnded = errors.New("the answer has ended")

func (s *Stream) failLocked(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	s.cond.Broadcast()
	if s.gone != nil {
		s.gone()
		s.gone = nil
	}
}

// OnGone has f called once when the request is cancelled or the connection ends, maybe at
// once; nil takes that back. f must not wait, nor call methods of the stream. OnGone reports whether the client is
// gone.
func (s *Stream) OnGone(f func()) bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.err != nil {
		if f != nil {
			f()
		}
		return true
	}
	s.gone = f
	return false
}

// Bodyless reports whether the request ended with its head.
func (s *Stream) Bodyless() bool { return s.bodyless }

// Small waits for the end of a small body, for a time, and appends it to b; false if it has not
// come whole, or has trailers: then it is there to be read.
func (s *Stream) Small(b []byte, d time.Duration) ([]byte, bool) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.ended && s.err == nil {
		late := false
		timer := time.AfterFunc(d, fault.Func("router", func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			late = true
			s.cond.Broadcast()
		}))
		for !s.ended && s.err == nil && !late {
			s.cond.Wait()
		}
		timer.Stop()
	}
	if !s.ended || len(s.trailer) > 0 {
		return b, false
	}
	for n := s.body.n; n > 0; n = s.body.n {
		have := len(b)
		b = append(b, make([]byte, n)...)
		c.returnLocked(s, int64(s.body.read(b[have:])))
	}
	return b, true
}

// Read reads the body. It ends with io.EOF.
func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.read(p)
	if n > 0 {
		s.conn.kick() // what lets the client send more
	}
	return n, err
}

func (s *Stream) read(p []byte) (int, error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case s.readErr != nil:
			return 0, s.readErr
		case s.body.n > 0 && len(p) > 0:
			n := s.body.read(p)
			c.returnLocked(s, int64(n))
			return n, nil
		case s.err != nil: // even if all has come: not all may have been read
			return 0, s.err
		case s.ended:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		s.cond.Wait()
	}
}

// Trailer is what followed the body; valid after Read returned io.EOF.
func (s *Stream) Trailer() []wire.Field {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.trailer
}

// endRead makes reads fail.
func (s *Stream) endRead(err error) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.readErr == nil {
		s.readErr = err
	}
	s.cond.Broadcast()
}

// WriteHead sends the head of an answer; end says that there is no more of it. A status of
// 1xx comes before the answer. Flush must be called once nothing more follows at once.
func (s *Stream) WriteHead(status int, h http.Header, end bool) error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.roomLocked(false); err != nil {
		return err
	}
	c.output.headLocked(s.id, status, h, end, c.peerMax)
	s.wroteLocked(end)
	return nil
}

// WriteTrailer ends the answer with trailers.
func (s *Stream) WriteTrailer(h http.Header) error { return s.WriteHead(0, h, true) }

// WriteData sends a part of the answer's body; end says that there is no more.
func (s *Stream) WriteData(p []byte, end bool) error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := s.roomLocked(len(p) > 0); err != nil {
			return err
		}
		n := int(min(int64(len(p)), int64(c.peerMax), c.window, s.window))
		last := end && n == len(p)
		flags := http2.Flags(0)
		if last {
			flags = http2.FlagDataEndStream
		}
		if n > 0 || last {
			c.output.next = append(appendHeader(c.output.next, n, http2.FrameData, flags, s.id), p[:n]...)
			c.window -= int64(n)
			s.window -= int64(n)
			p = p[n:]
		}
		if len(p) == 0 {
			s.wroteLocked(last)
			return nil
		}
	}
}

// wroteLocked notes that something of the answer waits to be written, and whether that is its
// end.
func (s *Stream) wroteLocked(end bool) {
	s.conn.budget.earn()
	if !end {
		return
	}
	s.answered = true
	if s.ended {
		s.conn.forgetLocked(s)
	}
}

// roomLocked waits until something of the answer can be sent; for data also until flow control
// lets it.
func (s *Stream) roomLocked(data bool) error {
	c := s.conn
	for {
		full := len(c.output.next) >= maxNext
		closed := data && (c.window <= 0 || s.window <= 0)
		switch {
		case s.err != nil:
			return s.err
		case s.answered:
			return errEnded
		case !full && !closed:
			return nil
		case !c.output.flushing && len(c.output.next) > 0:
			c.unlocked(c.flush)
		default:
			s.waitLocked(closed)
		}
	}
}

// waitLocked waits for room. A client that lets nothing be sent for too long has its request reset.
func (s *Stream) waitLocked(closed bool) {
	c := s.conn
	s.sending = true
	c.waiting++
	defer func() {
		s.sending = false
		c.waiting--
	}()
	if !closed { // the write has a limit of its own
		s.cond.Wait()
		return
	}
	over := false
	timer := time.AfterFunc(c.config.Progress, fault.Func("router", func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !over && s.err == nil {
			c.config.Stalled()
			c.resetLocked(s.id, http2.ErrCodeCancel)
			c.output.asyncLocked(c)
		}
	}))
	defer timer.Stop()
	for s.err == nil && (c.window <= 0 || s.window <= 0) {
		s.cond.Wait()
	}
	over = true
}

// Flush writes what was sent, together with what other streams send.
func (s *Stream) Flush() error {
	s.conn.flush()
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.err
}

// Reset breaks the stream off, in so far as it has not ended.
func (s *Stream) Reset(code http2.ErrCode) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[s.id] == s {
		c.resetLocked(s.id, code)
		c.output.asyncLocked(c)
	}
}

// finish ends the stream after Serve has returned.
func (s *Stream) finish() {
	code := http2.ErrCodeInternal
	c := s.conn
	c.mu.Lock()
	if s.answered { // before all of the request has come
		code = http2.ErrCodeNo
	}
	if c.streams[s.id] == s {
		c.resetLocked(s.id, code)
	}
	c.serving--
	if c.serving == 0 {
		c.quietAt = time.Now()
	}
	c.closeLocked()
	c.mu.Unlock()
	c.flush()
}

// errDeadline is met by reads after their deadline.
var errDeadline = os.ErrDeadlineExceeded
