// Package outward says where the daemon may connect when a user names the
// address: not to the machine itself, whose services may trust whoever connects
// from it; not to containers, which the machine reaches whatever network
// policies say; and not to where clouds tell secrets.
package outward

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// ErrAddress says that an address may not be connected to.
var ErrAddress = errors.New("the address must not be this machine's own")

// clouds are where clouds tell machines their secrets, beside link-local
// addresses: Amazon and Google by IPv6, Azure, Alibaba, Oracle.
var clouds = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192")}

// nat64 is where the IPv4 network lies for machines that have IPv6 alone.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Guard refuses addresses. Its zero value refuses all of this machine's.
type Guard struct {
	Local      bool                      // this machine's own addresses may be connected to, loopback too
	Containers netip.Prefix              // their network; the zero value for none
	Doors      func(netip.AddrPort) bool // tells where this machine serves everybody, but for its loopback; nil: nowhere
}

// Control is for a net.Dialer's ControlContext: it sees the address that a name
// was resolved to, so that no name leads around it.
func (g Guard) Control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return g.Check(to)
}

// Check is nil or ErrAddress.
func (g Guard) Check(to netip.AddrPort) error {
	ip := Plain(to.Addr())
	switch {
	case Forbidden(ip), g.Containers.IsValid() && g.Containers.Contains(ip):
		return ErrAddress
	case g.Local:
		return nil
	case ip.IsLoopback():
		return ErrAddress
	case g.Doors != nil && g.Doors(netip.AddrPortFrom(ip, to.Port())):
		return nil
	case Own(ip):
		return ErrAddress
	}
	return nil
}

// Plain is the address that is meant: that of IPv4, where IPv6 only wraps one.
func Plain(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if all := ip.As16(); nat64.Contains(ip) {
		ip = netip.AddrFrom4([4]byte(all[12:]))
	}
	return ip
}

// Forbidden tells whether nobody may connect to a plain address.
func Forbidden(ip netip.Addr) bool {
	return ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || slices.Contains(clouds, ip)
}

// Own tells whether a plain address is one of this machine's now. Where it
// cannot be known, it may be.
func Own(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		own, ok := netip.AddrFromSlice(network.IP)
		return ok && own.Unmap() == ip
	})
}
