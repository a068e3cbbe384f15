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

// Windows and pings of both ends. A connection whose receiver takes nothing holds up to maxAhead of the tunnel's window, which is
// windowBytes in the direction of the served end: the others go on while few such do.
const (
	maxAhead    = 64 << 10
	windowBytes = 4<<20 - 1
	maxStreams  = 10_000
	pingAfter   = 10 * time.Second // without a word of the other end
	pingTime    = 10 * time.Second
	dialTime    = 5 * time.Second // of one connection, at the served end
)

// protocols has HTTP/2 without TLS alone: who carries the stream authenticates its ends.
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
