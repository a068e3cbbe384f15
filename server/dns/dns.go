// Package dns answers containers' DNS queries: it resolves names of apps in
// internal domains, and forwards all other queries to the host's resolvers.
//
// It listens on the host's address in the containers' network and answers only
// containers. The number of queries in flight is limited per container and in
// total.
package dns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"cupola/runtime/fault"
)

// Table maps internal names to addresses. All names are in lower case and
// without a dot at the end.
type Table struct {
	Zones []string          // internal domains: queries for names in them are never forwarded
	Hosts map[string][]Host // by name; a name without any does not exist
	Names map[string]bool   // names outside the zones that are never forwarded

	localhost netip.Addr // what names below localhost resolve to; the zero Addr: they are names like others
}

// Host is an instance of an app: <index>.<name> is it alone.
type Host struct {
	Address netip.Addr // IPv4
	Index   int
}

// Config says where a Server listens, and to whom.
type Config struct {
	Address netip.AddrPort
	Clients netip.Prefix // all others get no answer
	// Localhost resolves the names below localhost to Address, where this machine is
	// for a container: 127.0.0.1 is the container itself.
	Localhost bool
	// Resolvers are asked in turn for what is not in the table; nil reads
	// /etc/resolv.conf, whenever it has changed.
	Resolvers func() []netip.AddrPort
	Log       *slog.Logger // nil discards
}

// Server answers. Its methods may be called at the same time.
type Server struct {
	cfg   Config
	udp   *net.UDPConn
	tcp   *net.TCPListener
	table atomic.Pointer[Table]
	busy  limiter // questions under way, and TCP connections
}

// Listen takes the port, for UDP and TCP. Until Run, clients wait.
func Listen(cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Resolvers == nil {
		cfg.Resolvers = (&hostResolvers{path: resolvConf, not: cfg.Address.Addr()}).read
	}
	udp, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(cfg.Address))
	if err != nil {
		return nil, fmt.Errorf("listen for questions: %w", err)
	}
	// Where the port was left open both take the same.
	at := netip.AddrPortFrom(cfg.Address.Addr(), udp.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	tcp, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for questions: %w", err), udp.Close())
	}
	s := &Server{cfg: cfg, udp: udp, tcp: tcp, busy: limiter{by: map[netip.Addr]int{}}}
	s.Set(Table{})
	return s, nil
}

// Address is where the server listens.
func (s *Server) Address() netip.AddrPort { return s.udp.LocalAddr().(*net.UDPAddr).AddrPort() }

// Set replaces the table, which must not change afterwards.
func (s *Server) Set(t Table) {
	if s.cfg.Localhost {
		t.localhost = s.cfg.Address.Addr()
	}
	s.table.Store(&t)
}

// Close takes no more questions. Run closes too.
func (s *Server) Close() error { return errors.Join(s.udp.Close(), s.tcp.Close()) }

// Run answers until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := fault.NewGroup(ctx)
	group.Go(fault.Loop(ctx, "dns", s.packets))
	group.Go(fault.Loop(ctx, "dns", s.connections))
	group.Go(fault.ErrFunc("dns", func() error {
		<-ctx.Done()
		_ = s.Close() // which ends the other two
		return nil
	}))
	return group.Wait()
}

// How many questions and connections are worked on at once.
const (
	maxBusy      = 1024
	maxBusyOfOne = 128
)

// limiter counts what is under way.
type limiter struct {
	mu  sync.Mutex
	all int
	by  map[netip.Addr]int
}

// enter reports whether there is room for one more of a client; leave ends it.
func (l *limiter) enter(client netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= maxBusy || l.by[client] >= maxBusyOfOne {
		return false
	}
	l.all++
	l.by[client]++
	return true
}

func (l *limiter) leave(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.by[client]--; l.by[client] == 0 {
		delete(l.by, client)
	}
}
