package network

import "net/netip"

// Survey lists what Networks of any configuration have in the host's network
// namespace, and what of others conflicts with them.
type Survey struct {
	// Tables are nftables tables whose name starts with "cupola"; Links are the
	// host's ends of containers' links, known by their hardware address.
	Tables, Links []string
	// Addresses are the host's, one of each Network, on the loopback.
	Addresses []Address
	// Dropping are the chains ("table chain") of others that drop what is
	// forwarded and not allowed by them: Docker's and firewalls'.
	Dropping []string
}

// Address is the host's of a Network.
type Address struct {
	netip.Addr
	// LinkPrefix begins the names of that Network's links; "" where a former
	// version set the address, which did not tell.
	LinkPrefix string
}
