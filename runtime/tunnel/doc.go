// Package tunnel carries TCP connections over one stream of bytes, to networks that only the other end reaches. It is HTTP/2 with
// a CONNECT request for each connection: Client asks, Serve connects.
package tunnel

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Flow control and pings. All connections to the end that serves share a window of windowBytes. One whose receiver does not read takes
// up at most maxAhead of it, so that the others go on unless there are many such.
const (
	maxAhead    = 64 << 10
	windowBytes = 4<<20 - 1
	maxStreams  = 10_000
	pingAfter   = 10 * time.Second // without a word of the other end
	pingTime    = 10 * time.Second
	dialTime    = 5 * time.Second // of one connection, at the end that serves
)

// protocols allows only HTTP/2 without TLS: whatever carries the stream authenticates both ends.
func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// stream is a stream of bytes as a connection. Its deadlines do nothing: pings find out that the other end is gone.
type stream struct {
	io.ReadWriteCloser
	once  sync.Once
	ended func(error) // is called once, with what ended it
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadWriteCloser.Read(p)
	if err != nil {
		s.end(err)
	}
	return n, err
}

// Close closes it. It does not wait: the other end may not answer.
func (s *stream) Close() error {
	s.end(net.ErrClosed)
	return nil
}

func (s *stream) end(err error) { s.once.Do(func() { s.ended(err) }) }

func (s *stream) LocalAddr() net.Addr              { return address{} }
func (s *stream) RemoteAddr() net.Addr             { return address{} }
func (s *stream) SetDeadline(time.Time) error      { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

// address is that of both ends.
type address struct{}

func (address) Network() string { return "tunnel" }
func (address) String() string  { return "tunnel" }
