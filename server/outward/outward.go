// Package outward says where the daemon may connect when a user names the
// address: not to the machine itself, whose services may trust whoever connects
// from it, and not to link-local addresses, where clouds tell secrets.
package outward

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
)

// ErrAddress says that an address may not be connected to.
var ErrAddress = errors.New("the address must not be this machine's own")

// amazon is where its cloud tells secrets by IPv6: that is not link-local.
var amazon = netip.MustParseAddr("fd00:ec2::254")

// nat64 is where the IPv4 network lies for machines that have IPv6 alone.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Control is for a net.Dialer's ControlContext: it sees the address that a name
// was resolved to, so that no name leads around it. local allows loopback
// addresses.
func Control(local bool) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		ip := to.Addr().Unmap()
		if all := ip.As16(); nat64.Contains(ip) {
			ip = netip.AddrFrom4([4]byte(all[12:]))
		}
		if ip.IsLinkLocalUnicast() || ip == amazon || ip.IsMulticast() || ip.IsUnspecified() || ip.IsLoopback() && !local {
			return ErrAddress
		}
		return nil
	}
}
