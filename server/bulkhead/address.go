package bulkhead

import (
	"net"
	"net/netip"
)

// Address is whom a connection is counted for: an IPv4 address, or an IPv6
// network of 64 bits, which one user has all of. All connections without one,
// like those of Unix sockets, are one.
func Address(a net.Addr) netip.Prefix {
	if a == nil {
		return netip.Prefix{}
	}
	return AddressOf(a.String())
}

// AddressOf is Address of "host:port", as an http.Request has it.
func AddressOf(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits) // of an address these bits are always right
	return p
}
