package server

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"cupola/runtime/egress"
	"cupola/server/front"
)

// egress says where the daemon may connect when a user names the address.
func (d *daemon) egress() egress.Guard {
	return egress.Guard{Local: d.AllowLoopback, Containers: d.dir.Owner().Subnet, Listeners: d.isListener}
}

// isListener reports whether an address leads to apps, as it does for everybody who
// reaches this machine.
func (c *Config) isListener(at netip.AddrPort) bool {
	for _, listens := range []string{c.HTTP, c.HTTPS} {
		host, port, err := net.SplitHostPort(listens)
		if err == nil && port == strconv.Itoa(int(at.Port())) && hears(host, at.Addr()) {
			return true
		}
	}
	host, ports, err := front.ParseTCP(c.TCP)
	return err == nil && ports.Contain(int(at.Port())) && hears(host, at.Addr())
}

// hears tells whether who listens at a host listens at an address.
func hears(host string, at netip.Addr) bool {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "" || err == nil && (ip.IsUnspecified() || ip.Unmap() == at)
}
