package sshproxy

import (
	"io"
	"net"
	"sync"
	"time"
)

// pipe makes a net.Conn, which the ssh package wants, of a process' input and
// output. It has no deadlines; whoever waits for it closes it.
type pipe struct {
	io.ReadWriteCloser
	once sync.Once
	err  error
}

// Close closes the stream, once.
func (p *pipe) Close() error {
	p.once.Do(func() { p.err = p.ReadWriteCloser.Close() })
	return p.err
}

func (p *pipe) LocalAddr() net.Addr              { return pipeAddr{} }
func (p *pipe) RemoteAddr() net.Addr             { return pipeAddr{} }
func (p *pipe) SetDeadline(time.Time) error      { return nil }
func (p *pipe) SetReadDeadline(time.Time) error  { return nil }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "container" }
