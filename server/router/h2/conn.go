package h2

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"cupola/runtime/fault"
)

// Config is how connections are served. All fields must be set.
type Config struct {
	// Serve answers a request. It runs on a goroutine of the request. A stream that
	// it has not ended is reset.
	Serve func(*Stream)
	// Busy and Quiet are called in turns: between them something of an answer
	// waits to be written.
	Busy, Quiet func()
	// Ending is called before the server closes a connection that the client may
	// still send on. The client should be let read what was sent.
	Ending func()
	// Stalled is called when a client took nothing of an answer for Progress.
	Stalled func()

	Head     time.Duration // for the preface, and for a head once it has begun
	Idle     time.Duration // for the next request
	Progress time.Duration // to send more of a frame with data, and to take more of an answer
	// MaxHeader bounds a head: names, values, and 32 bytes for each (RFC 9113, 6.5.2).
	MaxHeader int
}

// Limits of a connection, most of them those of net/http.
const (
	maxStreams     = 250      // requests under way
	maxFrame       = 16 << 10 // that the client may send
	streamWindow   = 1 << 20  // of a request's body that is not read yet
	connWindow     = 1 << 20  // of all bodies that are not read yet
	defaultWindow  = 65535
	maxWindow      = 1<<31 - 1
	tableSize      = 4096 // of headers, either way
	maxControls    = 1000 // frames that wait to be written and are no answer
	maxSettings    = 100  // in a frame
	readerBytes    = 8 << 10
	maxResetStream = 64 // whose late frames are ignored
)

// Conn is the connection of a client.
type Conn struct {
	config *Config
	conn   net.Conn
	in     *bufio.Reader
	framer *http2.Framer
	input  input // of the reading goroutine alone

	mu      sync.Mutex
	streams map[uint32]*Stream // that are open at one side at least
	serving int                // calls of Serve under way
	lastID  uint32             // the highest of a client's stream
	reset   []uint32           // streams that we have reset, the newest last
	window  int64              // that we may send
	credit  credit             // that the client may send
	initial int64              // the window of a new stream
	peerMax int                // the client's largest frame
	err     error              // the connection has ended
	leaving bool               // GOAWAY was sent
	quietAt time.Time          // when the last request ended
	budget  pacer              // of frames that change nothing
	waiting int                // streams that wait to send
	final   bool               // the connection is closed once all is written
	output  output
}

// errClosed is what streams meet whose connection has ended.
var errClosed = errors.New("the client has closed the connection")

// New gives the server's side of a connection; early is what was read of it.
func New(conn net.Conn, early []byte, c *Config) *Conn {
	h := &Conn{config: c, conn: conn, streams: map[uint32]*Stream{}, window: defaultWindow, initial: defaultWindow, peerMax: maxFrame, quietAt: time.Now(), budget: pacer{left: pacerBurst, at: time.Now()}}
	var from io.Reader = (*source)(h)
	if len(early) > 0 {
		from = io.MultiReader(bytes.NewReader(bytes.Clone(early)), from)
	}
	h.in = bufio.NewReaderSize(from, readerBytes)
	h.framer = http2.NewFramer(io.Discard, h.in)
	h.framer.SetMaxReadFrameSize(maxFrame)
	h.framer.SetReuseFrames()
	h.input.init(h)
	h.output.init()
	h.credit.size = connWindow
	h.credit.left = connWindow
	return h
}

// Run serves the connection until it ends, and closes it.
func (c *Conn) Run() {
	err := errors.New("panic")
	defer func() { c.finish(err) }() // also after a panic
	err = c.read()
}

func (c *Conn) read() error {
	c.input.until = time.Now().Add(c.config.Head)
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.in, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.greet()
	c.input.until = time.Now().Add(c.config.Head)
	for first := true; ; first = false {
		fh, err := c.framer.ReadFrameHeader()
		if err != nil {
			return connError(err)
		}
		if first && (fh.Type != http2.FrameSettings || fh.Flags.Has(http2.FlagSettingsAck)) {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		if err := c.readFrame(fh); err != nil {
			return err
		}
		if !c.input.head.open {
			c.input.until = time.Time{}
		}
	}
}

// readFrame reads a frame, whose header was read, and does what it says.
func (c *Conn) readFrame(fh http2.FrameHeader) error {
	switch {
	case fh.Type == http2.FrameData:
		c.input.data = true
	case c.input.until.IsZero():
		c.input.until = time.Now().Add(c.config.Head)
	}
	if fh.Type == http2.FrameHeaders {
		c.input.decoded = false
	}
	f, err := c.framer.ReadFrameForHeader(fh)
	c.input.data = false
	if err == nil {
		err = c.process(f)
	}
	var stream http2.StreamError
	if !errors.As(err, &stream) {
		return connError(err)
	}
	if fh.Type == http2.FrameHeaders && !c.input.decoded { // later heads cannot be decoded
		return http2.ConnectionError(stream.Code)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isIdle(stream.StreamID) {
		return errProtocol
	}
	c.resetLocked(stream.StreamID, stream.Code)
	return c.checkLocked()
}

// connError is the error of a connection for one that ReadFrame gives.
func connError(err error) error {
	if errors.Is(err, http2.ErrFrameTooLarge) {
		return http2.ConnectionError(http2.ErrCodeFrameSize)
	}
	return err
}

// input is what the reading goroutine knows.
type input struct {
	until   time.Time // the frame or head that is read must have come; zero: none has begun
	data    bool      // a frame with data is read
	limit   time.Time // the deadline of reads
	decoder *hpack.Decoder
	head    headReader
	decoded bool // the block of the last HEADERS has come into the decoder
	names   map[string]string
}

func (i *input) init(c *Conn) {
	i.names = map[string]string{}
	i.decoder = hpack.NewDecoder(tableSize, i.head.field)
	i.decoder.SetMaxStringLength(c.config.MaxHeader)
	i.head.limit = c.config.MaxHeader
}

// source is the connection as it is read: with its limits of time, and with what waits to
// be written on its way before a read that waits.
type source Conn

// Read reads what the client sends.
func (s *source) Read(p []byte) (int, error) {
	c := (*Conn)(s)
	c.kick()
	for {
		c.setLimit(time.Now())
		n, err := c.conn.Read(p)
		if failed := c.failed(); failed != nil { // the connection may still be read to its end
			return 0, failed
		}
		if n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := c.late(time.Now()); err != nil {
			return 0, err
		}
	}
}

func (c *Conn) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// setLimit sets the deadline of a read.
func (c *Conn) setLimit(now time.Time) {
	i := &c.input
	switch {
	case !i.until.IsZero():
		i.limit = i.until
	case i.data:
		i.limit = now.Add(c.config.Progress)
	default: // none but idle connections are ended by it
		if left := i.limit.Sub(now); left > c.config.Idle-c.config.Idle/8 && left <= c.config.Idle {
			return // that of a read just before is as good
		}
		i.limit = now.Add(c.idleFor(now))
	}
	_ = c.conn.SetReadDeadline(i.limit) // fails if it is closed, as reads do then
}

// errIdle is why a connection ends without requests.
var errIdle = errors.New("the connection was idle for too long")

// late says whether the connection ends with a deadline of reads.
func (c *Conn) late(now time.Time) error {
	if !c.input.until.IsZero() || c.input.data {
		return os.ErrDeadlineExceeded
	}
	if c.idleFor(now) <= 0 {
		return errIdle
	}
	return nil
}

// idleFor is how long the connection may still be idle.
func (c *Conn) idleFor(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) > 0 || c.serving > 0 {
		return c.config.Idle
	}
	return c.quietAt.Add(c.config.Idle).Sub(now)
}

// Shutdown lets no new requests begin, and ends the connection with the last one.
func (c *Conn) Shutdown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked(http2.ErrCodeNo)
	c.output.asyncLocked(c)
}

// leaveLocked sends GOAWAY, once.
func (c *Conn) leaveLocked(code http2.ErrCode) {
	if c.leaving && code == http2.ErrCodeNo || c.err != nil {
		return
	}
	c.leaving = true
	b := appendHeader(c.output.next, 8, http2.FrameGoAway, 0, 0)
	b = appendUint32(b, c.lastID)
	c.output.next = appendUint32(b, uint32(code))
}

// doneLocked reports whether a connection that is left has nothing to do any more.
func (c *Conn) doneLocked() bool {
	return (c.final || c.leaving && len(c.streams) == 0 && c.serving == 0) && len(c.output.next) == 0 && !c.output.flushing
}

// finish ends the connection: because of the client, or of an error, which is sent to it.
func (c *Conn) finish(err error) {
	code, ours := http2.ErrCodeNo, errors.Is(err, errIdle)
	var protocol http2.ConnectionError
	if errors.As(err, &protocol) {
		code, ours = http2.ErrCode(protocol), true
	}
	if !ours {
		c.fail(errClosed)
		return
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(farewell)) // fails if it is closed, as the write does then
	c.mu.Lock()
	c.leaveLocked(code)
	for _, s := range c.streams {
		s.failLocked(errClosed)
	}
	c.final = true
	c.mu.Unlock()
	c.flush()
}

// farewell is how long a client may take for GOAWAY.
const farewell = time.Second

// fail ends the connection, and all its streams.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(err)
}

func (c *Conn) failLocked(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	for _, s := range c.streams {
		s.failLocked(err)
	}
	fault.Go("router", func() { c.conn.Close() }) // TLS says good-bye, which may wait
}

// pacer bounds frames that change nothing, and those that announce windows: what is left grows
// with time, and with what is sent.
type pacer struct {
	left int
	at   time.Time
}

const (
	pacerBurst  = 10_000
	pacerSecond = 1_000
	pacerFrame  = 4 // for one with a head or data
)

// earn notes a frame with a head or data. Clients answer one with announcements of windows, and learn of
// delays by a PING.
func (p *pacer) earn() { p.left = min(pacerBurst, p.left+pacerFrame) }

// charge takes a price; false when there is not enough left.
func (p *pacer) charge(price int) bool {
	if p.left >= price {
		p.left -= price
		return true
	}
	now := time.Now()
	p.left = min(pacerBurst, p.left+int(now.Sub(p.at).Seconds()*pacerSecond))
	p.at = now
	p.left -= price
	return p.left >= 0
}
