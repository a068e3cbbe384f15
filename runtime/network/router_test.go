package network

import (
	"fmt"
	"net/netip"
	"testing"
)

func TestWhoReachesTheRouter(t *testing.T) {
	r := newRouter([]netip.AddrPort{
		netip.MustParseAddrPort("[::]:80"), netip.MustParseAddrPort("0.0.0.0:443"),
		netip.MustParseAddrPort("192.168.1.5:8080"), netip.MustParseAddrPort("127.0.0.1:9090"), netip.MustParseAddrPort("[fe80::1]:9090"),
	})
	const everywhere, one = "host [{80 80} {443 443}]", "192.168.1.5 [{8080 8080}]"
	for _, c := range []struct {
		protocol, destination, ports string
		want                         []string
	}{
		{"all", "0.0.0.0-9.255.255.255", "", []string{everywhere, one}},
		{"tcp", "9.0.0.0/8", "", []string{everywhere, one}},
		{"tcp", "192.168.0.0/16", "", []string{"192.168.0.0 [{80 80} {443 443}]", one}},
		{"tcp", "10.0.0.0/8", "", []string{"10.0.0.0 [{80 80} {443 443}]"}},
		{"udp", "9.0.0.0/8", "", nil},
		{"tcp", "9.0.0.0/8", "443", nil},
		{"tcp", "9.0.0.1", "", nil},
	} {
		var got []string
		for _, rule := range r.rules(rule(t, c.protocol, c.destination, c.ports)) {
			to := "host"
			if len(rule.Destinations) > 0 {
				to = rule.Destinations[0].From.String()
			}
			got = append(got, fmt.Sprint(to, " ", rule.Ports))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s to %s, ports %q: got %q; want %q", c.protocol, c.destination, c.ports, got, c.want)
		}
	}
}
