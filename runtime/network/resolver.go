package network

import (
	"net/netip"
	"os"
	"strings"
)

// hostResolvers reads the host's name servers. systemd-resolved keeps the ones
// behind its own loopback address in the first file.
func hostResolvers() []netip.Addr {
	for _, path := range []string{"/run/systemd/resolve/resolv.conf", "/etc/resolv.conf"} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if found := parseResolvers(string(data)); len(found) > 0 {
			return found
		}
	}
	return nil
}

// parseResolvers returns the IPv4 name servers that a container can reach.
func parseResolvers(conf string) []netip.Addr {
	var all []netip.Addr
	for line := range strings.Lines(conf) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		addr, err := netip.ParseAddr(fields[1])
		if err == nil && addr.Is4() && !addr.IsLoopback() {
			all = append(all, addr)
		}
	}
	return all
}
