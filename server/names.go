package server

import (
	"net/netip"

	"cupola/runtime/cell"
	"cupola/runtime/network"
	"cupola/server/dns"
)

// namesPort is where resolvers listen.
const namesPort = 53

// openNames listens for containers' questions for names. Where another program
// has the port on all addresses, apps find no internal names.
func (d *daemon) openNames() {
	subnet := d.dir.Owner().Subnet
	s, err := dns.Listen(dns.Config{Address: netip.AddrPortFrom(subnet.Addr().Next(), namesPort), Clients: subnet, Log: d.Log})
	if err != nil {
		d.Log.Error("internal names of apps do not resolve: let the other program listen on its own addresses only", "err", err)
		return
	}
	d.names = s
}

// containerNetwork is the network as containers are told of it: where there is
// a server for names, they ask that one alone.
func (d *daemon) containerNetwork() cell.Network {
	if d.names == nil {
		return d.network
	}
	return named{d.network, []netip.Addr{d.names.Address().Addr()}}
}

type named struct {
	*network.Network
	resolvers []netip.Addr
}

// Resolvers are for resolv.conf.
func (n named) Resolvers() []netip.Addr { return n.resolvers }
