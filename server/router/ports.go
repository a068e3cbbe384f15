package router

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"cupola/runtime/fault"
)

// PortsConfig is how Ports works; zero values take the defaults.
type PortsConfig struct {
	Host string // address to listen at; "" is all of the machine's
	// MaxConnections is how many connections a port has at a time; further ones
	// wait in the kernel's queue until one ends. 2000.
	MaxConnections int
	// Linger is how long connections go on after their route is gone; 10 s.
	Linger time.Duration
	// Retry is how often a port that is taken is tried again; 2 s.
	Retry time.Duration
	// Report is called when listening at a port fails, once for each reason,
	// and with nil when it works again; may be nil.
	Report func(port int, appGUID string, err error)
	// Held are listeners from before, which are taken in place of new ones.
	Held map[int]net.Listener
	// Keep is called with each new listener, so that the service manager can
	// hold its socket beyond this process; Forget with each port that is no
	// longer used, or that was unused in Held; both may be nil.
	Keep   func(port int, l *net.TCPListener)
	Forget func(port int)
}

// Ports listens for the routes of a Router that have a port, and passes what
// comes there on to their endpoints, byte for byte. A port is open for as long as
// the table has a route with it, whether there are endpoints or not.
type Ports struct {
	router *Router
	config PortsConfig

	mu   sync.Mutex
	open map[int]*port
	gone map[*port]bool           // closed; their connections may go on
	held map[int]*net.TCPListener // from before, and not taken yet

	accepting sync.WaitGroup
	left      chan struct{}
}

// NewPorts gives the ports of a router. Run opens them.
func NewPorts(r *Router, c PortsConfig) *Ports {
	c.MaxConnections = cmp.Or(c.MaxConnections, 2000)
	c.Linger = cmp.Or(c.Linger, 10*time.Second)
	c.Retry = cmp.Or(c.Retry, 2*time.Second)
	if c.Report == nil {
		c.Report = func(int, string, error) {}
	}
	if c.Keep == nil {
		c.Keep = func(int, *net.TCPListener) {}
	}
	if c.Forget == nil {
		c.Forget = func(int) {}
	}
	p := &Ports{router: r, config: c, open: map[int]*port{}, gone: map[*port]bool{}, left: make(chan struct{}), held: map[int]*net.TCPListener{}}
	for number, l := range c.Held {
		if own, isTCP := l.(*net.TCPListener); isTCP && at(own, c.Host, number) {
			p.held[number] = own
			continue
		}
		c.Forget(number)
		l.Close()
	}
	return p
}

// at reports whether a listener is at an address, as it is or for all of them.
func at(l *net.TCPListener, host string, number int) bool {
	addr, _ := l.Addr().(*net.TCPAddr)
	wanted, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(host, strconv.Itoa(number)))
	if err != nil || addr.Port != number {
		return false
	}
	return addr.IP.Equal(wanted.IP) || addr.IP.IsUnspecified() && (wanted.IP == nil || wanted.IP.IsUnspecified())
}

// Run listens until ctx ends. Connections go on until live ends, which is later.
func (p *Ports) Run(ctx, live context.Context) error {
	retry := time.NewTicker(p.config.Retry)
	defer retry.Stop()
	for ctx.Err() == nil {
		p.follow(live, p.router.index.Load().ports)
		select {
		case <-p.router.changed:
		case <-retry.C:
		case <-ctx.Done():
		}
	}
	p.leave()
	fault.Go("router", func() {
		p.accepting.Wait()
		close(p.left)
	})
	<-live.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	for port := range p.gone {
		port.cut()
	}
	return nil
}

// Left is closed when Run listens no more, and all connections that have come
// count as requests of the router, which Drain waits for.
func (p *Ports) Left() <-chan struct{} { return p.left }

// leave listens no more, and lets who keeps the sockets keep them.
func (p *Ports) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for number, port := range p.open {
		p.closeLocked(number, port)
	}
}

// follow opens the ports that routes have, and closes those that none has.
func (p *Ports) follow(live context.Context, wanted map[int]*pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for number, port := range p.open {
		if wanted[number] == nil {
			p.config.Forget(number) // first: a socket that is kept and not served would let clients wait
			p.closeLocked(number, port)
		}
	}
	for number, l := range p.held {
		if wanted[number] == nil {
			p.config.Forget(number)
			l.Close()
			delete(p.held, number)
		}
	}
	for number, pool := range wanted {
		if port := p.open[number]; port == nil || port.err != nil {
			p.openLocked(live, number, pool.appGUID)
		}
	}
}

func (p *Ports) closeLocked(number int, port *port) {
	delete(p.open, number)
	if port.err != nil {
		return
	}
	port.listener.Close()
	p.gone[port] = true
	time.AfterFunc(p.config.Linger, fault.Func("router", func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.gone, port)
		port.cut()
	}))
}

func (p *Ports) openLocked(live context.Context, number int, appGUID string) {
	before := p.open[number]
	listener, err := p.listenLocked(number)
	made := &port{listener: listener, err: err, conns: map[net.Conn]bool{}, slots: make(chan struct{}, p.config.MaxConnections)}
	p.open[number] = made
	if err == nil {
		p.config.Keep(number, listener)
		accept := fault.Loop(live, "router", func(context.Context) error {
			made.accept(p.router.requests, func(client *net.TCPConn) { p.relay(live, number, made, client) })
			return nil
		})
		p.accepting.Go(fault.Func("router", func() { _ = accept() }))
	}
	if err != nil && (before == nil || before.err.Error() != err.Error()) || err == nil && before != nil {
		p.router.config.Log.Warn("state of a tcp port changed", slog.Int("port", number), slog.String("app_guid", appGUID), slog.Any("err", err))
		p.config.Report(number, appGUID, err)
	}
}

// listenLocked takes the listener that there was before, or makes one.
func (p *Ports) listenLocked(number int) (*net.TCPListener, error) {
	if l := p.held[number]; l != nil {
		delete(p.held, number)
		return l, nil
	}
	return p.listen(number)
}

func (p *Ports) listen(number int) (*net.TCPListener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(p.config.Host, strconv.Itoa(number)))
	if err != nil {
		return nil, err
	}
	own, _ := l.(*net.TCPListener) // of tcp
	return own, nil
}

// Usable is nil when a port is listened at, or can be.
func (p *Ports) Usable(number int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if port := p.open[number]; port != nil {
		return port.err
	}
	if p.held[number] != nil {
		return nil
	}
	l, err := p.listen(number)
	if err != nil {
		return err
	}
	return l.Close()
}
