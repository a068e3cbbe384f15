package executor

import (
	"net/netip"
	"strings"

	"cupola/runtime/cell"
	"cupola/runtime/network"
	"cupola/server/dns"
)

// namesPort is where resolvers listen.
const namesPort = 53

// openNames listens for containers' questions for names. Where another program
// has the port on all addresses, apps find no internal names.
func (e *Executor) openNames() {
	s, err := dns.Listen(dns.Config{
		Address: netip.AddrPortFrom(e.gateway(), namesPort), Clients: e.Dir.Owner().Subnet, Log: e.Log,
		Localhost: e.Domain == "localhost" || strings.HasSuffix(e.Domain, ".localhost"),
	})
	if err != nil {
		e.Log.Error("internal names of apps do not resolve: let the other program listen on its own addresses only", "err", err)
		return
	}
	e.Names = s
}

// containerNetwork is the network as containers see it: if cupola serves DNS, they
// use only its server.
func (e *Executor) containerNetwork() cell.Network {
	if e.Names == nil {
		return e.Network
	}
	return named{e.Network, []netip.Addr{e.Names.Address().Addr()}}
}

type named struct {
	*network.Network
	resolvers []netip.Addr
}

// Resolvers are for resolv.conf.
func (n named) Resolvers() []netip.Addr { return n.resolvers }
