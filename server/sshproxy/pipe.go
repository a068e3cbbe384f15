package sshproxy

import (
	"io"
	"net"
	"sync"
	"time"
)

// pipe adapts a process' input and output to the net.Conn that the ssh package
// needs. It has no deadlines; callers close it instead.
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
