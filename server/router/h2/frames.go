package h2

import (
	"slices"
	"time"

	"golang.org/x/net/http2"
)

// errCalm ends connections of clients that make too much work.
const errCalm = http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)

const errProtocol = http2.ConnectionError(http2.ErrCodeProtocol)

// resetPrice is what a request costs that is reset before it was answered.
const resetPrice = 10

// process does what a frame says.
func (c *Conn) process(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.HeadersFrame:
		return c.beginHead(f)
	case *http2.ContinuationFrame:
		return c.continueHead(f)
	case *http2.DataFrame:
		return c.takeData(f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.control(f); err != nil {
		return err
	}
	return c.checkLocked()
}

// control does what a frame says that is no part of a request.
func (c *Conn) control(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.WindowUpdateFrame:
		return c.takeWindow(f)
	case *http2.SettingsFrame:
		return c.takeSettings(f)
	case *http2.RSTStreamFrame:
		return c.takeReset(f)
	case *http2.PingFrame:
		if f.IsAck() {
			return c.waste(1)
		}
		c.output.pingLocked(f.Data)
		return c.waste(1)
	case *http2.PushPromiseFrame:
		return errProtocol
	case *http2.GoAwayFrame:
		c.leaveLocked(http2.ErrCodeNo)
		return nil
	}
	return c.waste(1) // PRIORITY, and what is unknown
}

// waste charges for a frame.
func (c *Conn) waste(price int) error {
	if !c.budget.charge(price) {
		return errCalm
	}
	return nil
}

// checkLocked ends a connection whose client does not take what it asks for.
func (c *Conn) checkLocked() error {
	if c.output.controls > maxControls {
		return errCalm
	}
	return nil
}

func (c *Conn) takeWindow(f *http2.WindowUpdateFrame) error {
	n := int64(f.Increment)
	if f.StreamID == 0 {
		if c.window+n > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.window += n
		c.wakeLocked()
		return c.waste(1)
	}
	if c.isIdle(f.StreamID) {
		return errProtocol
	}
	s := c.streams[f.StreamID]
	if s == nil {
		return c.waste(1)
	}
	if s.window+n > maxWindow {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	s.window += n
	s.cond.Broadcast()
	return c.waste(1)
}

// isIdle reports whether a stream has not begun.
func (c *Conn) isIdle(id uint32) bool { return id%2 == 0 || id > c.lastID && !c.leaving }

func (c *Conn) takeSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return c.waste(1)
	}
	if f.NumSettings() > maxSettings || f.HasDuplicates() { // each may concern all streams
		return errProtocol
	}
	if err := f.ForeachSetting(c.set); err != nil {
		return err
	}
	c.output.next = appendHeader(c.output.next, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	c.output.controls++
	return c.waste(1)
}

func (c *Conn) set(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingHeaderTableSize:
		c.output.encoder.SetMaxDynamicTableSize(min(s.Val, tableSize))
	case http2.SettingMaxFrameSize:
		c.peerMax = int(min(s.Val, maxFrame))
	case http2.SettingInitialWindowSize:
		more := int64(s.Val) - c.initial
		c.initial = int64(s.Val)
		for _, stream := range c.streams {
			if stream.window += more; stream.window > maxWindow {
				return http2.ConnectionError(http2.ErrCodeFlowControl)
			}
		}
		c.wakeLocked()
	}
	return nil
}

// wakeLocked wakes all streams that wait to send.
func (c *Conn) wakeLocked() {
	if c.waiting == 0 {
		return
	}
	for _, s := range c.streams {
		if s.sending {
			s.cond.Broadcast()
		}
	}
}

func (c *Conn) takeReset(f *http2.RSTStreamFrame) error {
	if c.isIdle(f.StreamID) {
		return errProtocol
	}
	s := c.streams[f.StreamID]
	if s == nil {
		return c.waste(1)
	}
	s.failLocked(errReset)
	c.forgetLocked(s)
	return c.waste(resetPrice)
}

// takeData takes a part of a request's body.
func (c *Conn) takeData(f *http2.DataFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int64(f.Length) // with padding
	if !c.credit.take(n) {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	s := c.streams[f.StreamID]
	if s == nil || s.ended {
		return c.lateData(f, n)
	}
	if !s.credit.take(n) {
		c.returnLocked(nil, n)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	data := f.Data()
	if len(data) == 0 && !f.StreamEnded() {
		if err := c.waste(1); err != nil {
			return err
		}
	}
	if len(data) > 0 {
		c.budget.earn()
	}
	if s.came += int64(len(data)); s.Length >= 0 && (s.came > s.Length || f.StreamEnded() && s.came < s.Length) {
		c.returnLocked(nil, n)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
	}
	s.body.write(data)
	c.returnLocked(s, n-int64(len(data)))
	if f.StreamEnded() {
		c.endLocked(s)
	}
	s.cond.Broadcast()
	return c.checkLocked()
}

// lateData is for data on a stream that takes none.
func (c *Conn) lateData(f *http2.DataFrame, n int64) error {
	if c.isIdle(f.StreamID) {
		return errProtocol
	}
	c.returnLocked(nil, n)
	if err := c.waste(1); err != nil {
		return err
	}
	if slices.Contains(c.reset, f.StreamID) || f.StreamID > c.lastID {
		return c.checkLocked()
	}
	return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
}

// endLocked notes that the client has sent all of a request.
func (c *Conn) endLocked(s *Stream) {
	s.ended = true
	if s.answered {
		c.forgetLocked(s)
	}
}

// forgetLocked drops a stream that is closed at both sides.
func (c *Conn) forgetLocked(s *Stream) {
	c.returnLocked(nil, s.body.drop())
	delete(c.streams, s.id)
	if len(c.streams) == 0 {
		c.quietAt = time.Now()
	}
}

// resetLocked ends a stream with an error.
func (c *Conn) resetLocked(id uint32, code http2.ErrCode) {
	b := appendHeader(c.output.next, 4, http2.FrameRSTStream, 0, id)
	c.output.next = appendUint32(b, uint32(code))
	c.output.controls++
	if len(c.reset) == maxResetStream {
		c.reset = append(c.reset[:0], c.reset[1:]...)
	}
	c.reset = append(c.reset, id)
	if s := c.streams[id]; s != nil {
		s.failLocked(http2.StreamError{StreamID: id, Code: code})
		c.forgetLocked(s)
	}
}

// credit is how much the other side may send.
type credit struct {
	size, left int64
	due        int64 // taken, and not announced again
}

func (k *credit) take(n int64) bool {
	if n > k.left {
		return false
	}
	k.left -= n
	return true
}

// give returns what was taken. It returns how much is to be announced: much at once.
func (k *credit) give(n int64) uint32 {
	k.due += n
	if k.due < k.size/4 && k.due < k.left {
		return 0
	}
	n, k.due = k.due, 0
	k.left += n
	return uint32(n)
}

// returnLocked lets the client send as much as was read of a stream's body; nil is a stream
// of which no more is wanted.
func (c *Conn) returnLocked(s *Stream, n int64) {
	if n == 0 {
		return
	}
	if more := c.credit.give(n); more > 0 {
		c.output.windowLocked(0, more)
	}
	if s == nil || s.ended {
		return
	}
	if more := s.credit.give(n); more > 0 {
		c.output.windowLocked(s.id, more)
	}
}
