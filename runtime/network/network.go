// Package network gives each container a network namespace with one routed
// link, and decides what it may reach.
//
// A link is a pair of virtual Ethernet devices made right inside the new
// namespace, a /32 address, and neighbours known to both ends beforehand: no
// bridge, no ARP, no limit on their number. The namespace is pinned by a mount
// in the state directory, so it outlives the daemon, and dropping that mount is
// how it and its links go.
//
// Egress is desired state. One static nftables table sends each container's new
// connections to the chain of its rules; containers with the same rules share
// the chain. What no rule names is refused: the host, other containers, every
// network. The host reaches all containers, and answers always pass.
//
// The kernel asks the chains of all programs, and any program may delete ours: a
// Network has its containers' packets accepted by other firewalls, and looks
// regularly whether all it set is still there.
package network

import (
	"log/slog"
	"net/netip"
)

// Config says where a Network keeps its state and what it calls its objects.
type Config struct {
	// Dir holds the pinned namespaces. One Network owns it.
	Dir string
	// Subnet is where containers' addresses come from; the zero value is
	// 10.251.0.0/16. Its first address is the host's.
	Subnet netip.Prefix
	// Table is the nftables table, "" is "cupola". One Network owns it.
	Table string
	// LinkPrefix starts the name of every link on the host, "" is "cup". At most
	// nine characters. No other link of the host may start with it.
	LinkPrefix string
	// Router is where the host's router listens: at 0.0.0.0 it is each of the host's
	// addresses. Apps' routes are public, so it is open by TCP to those who may reach
	// public networks, or the network that its address is in.
	Router []netip.AddrPort
	// Names opens port 53 of the host's address to all containers, whatever their
	// rules: there they find each other.
	Names bool
	// Resolvers are the name servers of containers; nil takes the host's own
	// that are not on the loopback.
	Resolvers []netip.Addr
	// Log receives what an operator must know; nil discards it.
	Log *slog.Logger
}

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	if !c.Subnet.IsValid() {
		c.Subnet = netip.MustParsePrefix("10.251.0.0/16")
	}
	c.Subnet = c.Subnet.Masked()
	if c.Table == "" {
		c.Table = "cupola"
	}
	if c.LinkPrefix == "" {
		c.LinkPrefix = "cup"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Attachment is a container's place in the network.
type Attachment struct {
	// NetNS is the path of the namespace.
	NetNS string
	// Address is the container's; Gateway is the host's end of its link.
	Address, Gateway netip.Addr
	// HostLink names the host's end.
	HostLink string
}

// Policy is what one container may reach: whatever any of the rules allows. Policies
// with one and the same list cost no more than one.
type Policy struct {
	Address netip.Addr
	Egress  []Rule
}
