package router

import (
	"errors"
	"net"
	"sync"
	"time"

	"cupola/runtime/fault"
)

// port is one that is listened at, or cannot be.
type port struct {
	listener *net.TCPListener
	err      error         // why there is no listener
	slots    chan struct{} // one for each connection there may be

	mu    sync.Mutex
	conns map[net.Conn]bool // of clients and to endpoints
	over  bool              // closed
}

// acceptPause is waited before Accept is tried again after an error.
const acceptPause = 50 * time.Millisecond

// accept hands connections on until the listener is closed. Each counts as a
// request from when it was accepted.
func (p *port) accept(requests *inflight, serve func(*net.TCPConn)) {
	for {
		p.slots <- struct{}{}
		conn, err := p.listener.Accept()
		if err != nil {
			<-p.slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			<-time.After(acceptPause) // out of files: they come back
			continue
		}
		client, _ := conn.(*net.TCPConn) // of a listener for TCP
		requests.enter()
		fault.Go("router", func() {
			defer func() { <-p.slots }()
			defer requests.leave()
			serve(client)
		})
	}
}

// track notes a connection, so that it can be cut; false when it is too late.
func (p *port) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.conns[c] = true
	}
	return !p.over
}

func (p *port) untrack(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// cut ends all connections, and has no more begin.
func (p *port) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for c := range p.conns {
		c.Close()
	}
}
