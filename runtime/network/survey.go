package network

import "net/netip"

// Survey tells what Networks, of whatever configuration, have in the host's
// network namespace, and what of others is in their way.
type Survey struct {
	// Tables are nftables tables whose name starts with "cupola"; Links are the
	// host's ends of containers' links, known by their hardware address.
	Tables, Links []string
	// Addresses are the host's, one of each Network, on the loopback.
	Addresses []netip.Addr
	// Dropping are the chains ("table chain") of others that drop what is
	// forwarded and not allowed by them: Docker's and firewalls'.
	Dropping []string
}
