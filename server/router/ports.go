package router

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"
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
	// Report is told when a port cannot be listened at, once for each reason,
	// and when it can after that (nil); may be nil.
	Report func(port int, appGUID string, err error)
}

// Ports listens for the routes of a Router that have a port, and passes what
// comes there on to their endpoints, byte for byte. A port is open for as long as
// the table has a route with it, whether there are endpoints or not.
type Ports struct {
	router *Router
	config PortsConfig

	mu   sync.Mutex
	open map[int]*port
	left map[*port]bool // closed; their connections may go on
}

// NewPorts gives the ports of a router. Run opens them.
func NewPorts(r *Router, c PortsConfig) *Ports {
	c.MaxConnections = cmp.Or(c.MaxConnections, 2000)
	c.Linger = cmp.Or(c.Linger, 10*time.Second)
	c.Retry = cmp.Or(c.Retry, 2*time.Second)
	if c.Report == nil {
		c.Report = func(int, string, error) {}
	}
	return &Ports{router: r, config: c, open: map[int]*port{}, left: map[*port]bool{}}
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
	p.follow(live, nil)
	<-live.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	for port := range p.left {
		port.cut()
	}
	return nil
}

// follow opens the ports that routes have, and closes those that none has.
func (p *Ports) follow(live context.Context, wanted map[int]*pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for number, port := range p.open {
		if wanted[number] == nil {
			p.closeLocked(number, port)
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
	p.left[port] = true
	time.AfterFunc(p.config.Linger, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.left, port)
		port.cut()
	})
}

func (p *Ports) openLocked(live context.Context, number int, appGUID string) {
	before := p.open[number]
	listener, err := p.listen(number)
	made := &port{listener: listener, err: err, conns: map[net.Conn]bool{}, slots: make(chan struct{}, p.config.MaxConnections)}
	p.open[number] = made
	if err == nil {
		go made.accept(func(client *net.TCPConn) { p.relay(live, number, made, client) })
	}
	if err != nil && (before == nil || before.err.Error() != err.Error()) || err == nil && before != nil {
		p.router.config.Log.Warn("state of a tcp port changed", slog.Int("port", number), slog.String("app_guid", appGUID), slog.Any("err", err))
		p.config.Report(number, appGUID, err)
	}
}

func (p *Ports) listen(number int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(p.config.Host, strconv.Itoa(number)))
}

// Usable is nil when a port is listened at, or can be.
func (p *Ports) Usable(number int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if port := p.open[number]; port != nil {
		return port.err
	}
	l, err := p.listen(number)
	if err != nil {
		return err
	}
	return l.Close()
}
