package proxy

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// acceptRetry is the pause after a connection could not be accepted, as when the
// machine has too many files open.
const acceptRetry = 100 * time.Millisecond

// proxy serves clients of the TLS ports.
type proxy struct {
	settings   *settings
	slots      chan struct{} // one for each client
	handshakes handshakes

	mu      sync.Mutex
	clients int
	used    time.Time // when the last one came or went
}

func newProxy(s *settings, clients int) *proxy {
	return &proxy{settings: s, slots: make(chan struct{}, clients), handshakes: handshakes{most: min(clients, maxHandshakes)}, used: time.Now()}
}

// serve accepts clients until there have been none for the given time. Those that
// come later wait in the sockets, for the next proxy.
func (p *proxy) serve(listeners []*net.TCPListener, idle time.Duration) error {
	for {
		if err := p.acceptFor(listeners, max(idle-p.quiet(), 0)); err != nil {
			return err
		}
		if p.quiet() >= idle {
			return nil
		}
	}
}

// quiet is how long there have been no clients.
func (p *proxy) quiet() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients > 0 {
		return 0
	}
	return time.Since(p.used)
}

// acceptFor accepts clients for a time. When it returns, no client was accepted
// that does not count.
func (p *proxy) acceptFor(listeners []*net.TCPListener, d time.Duration) error {
	until := time.Now().Add(max(d, time.Millisecond))
	errs := make(chan error)
	for _, l := range listeners {
		if err := l.SetDeadline(until); err != nil {
			return err
		}
		go func() { errs <- p.accept(l) }()
	}
	var all []error
	for range listeners {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// accept accepts clients of one port until the deadline.
func (p *proxy) accept(l *net.TCPListener) error {
	for {
		conn, err := l.AcceptTCP()
		switch {
		case err == nil:
			p.come()
			p.slots <- struct{}{}
			go p.client(conn, p.handshakes.begin(conn)) // begun here, so in the order in which they came
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		}
		<-time.After(acceptRetry)
	}
}

func (p *proxy) come() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients++
	p.used = time.Now()
}

func (p *proxy) leave() {
	p.mu.Lock()
	p.clients--
	p.used = time.Now()
	p.mu.Unlock()
	<-p.slots
}
