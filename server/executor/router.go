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
	for flag, address := range map[string]string{"http": e.HTTP, "https": e.HTTPS} {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			continue // it is off
		}
		all = append(all, at)
		if !at.Addr().IsUnspecified() {
			inside[flag] = netip.AddrPortFrom(e.Dir.Owner().Subnet.Addr().Next(), at.Port())
			all = append(all, inside[flag])
		}
	}
	return all, inside
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
		e.Inside[flag] = l
	}
}
