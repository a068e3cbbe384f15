package executor

import (
	"context"
	"net"
	"net/netip"
)

// routerListens is where the router listens for containers. Where that is one address,
// such as the loopback, it is the host's address in their network, too: there the names
// below localhost lead.
func (e *Executor) routerListens() (all []netip.AddrPort, inside map[string]netip.AddrPort) {
	inside = map[string]netip.AddrPort{}
	for _, l := range []struct{ flag, address string }{{"http", e.HTTP}, {"https", e.HTTPS}} { // in the order that the next daemon's rules have
		at, ok := listenAddress(l.address)
		if !ok {
			continue // it is off
		}
		all = append(all, at)
		if !at.Addr().IsUnspecified() {
			inside[l.flag] = netip.AddrPortFrom(e.gateway(), at.Port())
			all = append(all, inside[l.flag])
		}
	}
	return all, inside
}

// gateway is the host's address in the containers' network.
func (e *Executor) gateway() netip.Addr { return e.Dir.Owner().Subnet.Addr().Next() }

// listenAddress is the address that net.Listen listens at, given the value of a flag.
func listenAddress(text string) (at netip.AddrPort, ok bool) {
	found, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return at, false
	}
	if len(found.IP) == 0 {
		found.IP = net.IPv6unspecified
	}
	at = found.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), true
}

// openInside listens for requests that containers send to routes. Without a listener
// they reach none that leads to this machine's loopback.
func (e *Executor) openInside(ctx context.Context, at map[string]netip.AddrPort) {
	e.Inside = map[string]net.Listener{}
	for flag, address := range at {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp4", address.String())
		if err != nil {
			e.Log.ErrorContext(ctx, "apps do not reach routes of this machine's loopback: let the other program listen on its own addresses only", "err", err)
			continue
		}
		e.Inside[flag] = insideListener{l, e.Dir.Owner().Subnet}
	}
}

// insideListener takes connections from one network alone: this machine takes packets for
// each of its addresses at each of its links, also from other machines.
type insideListener struct {
	net.Listener
	network netip.Prefix
}

// Accept waits for a connection from the network.
func (l insideListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || l.network.Contains(c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()) {
			return c, err
		}
		_ = c.Close()
	}
}
