package outbound

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"cupola/runtime/egress"
	"cupola/runtime/egress/egresstest"
	"cupola/store/cf"
)

// TestRules asks which addresses the rules of a space let the daemon connect to.
func TestRules(t *testing.T) {
	r := &Rules{where: egress.Guard{Containers: netip.MustParsePrefix("10.251.0.0/16")}, rules: []cf.SecurityRule{
		{Protocol: "all", Destination: "0.0.0.0-9.255.255.255"},
		{Protocol: "tcp", Destination: "10.1.0.0/16, 10.9.9.9", Ports: "443,8000-8100"},
		{Protocol: "udp", Destination: "10.2.0.0/16", Ports: "53"},
		{Protocol: "all", Destination: "127.0.0.0/8,169.254.0.0/16,fc00::/7"},
		{Protocol: "all", Destination: "10.250.0.0-10.252.255.255, 168.63.0.0/16"},
		{Protocol: "all", Destination: "10.248.0.0/13,10.251.7.0/24"},
	}}
	for address, want := range map[string]bool{
		"8.8.8.8:1": true, "11.0.0.1:443": false, "10.1.2.3:443": true, "10.1.2.3:8050": true, "10.1.2.3:80": false, "10.9.9.9:443": true,
		"10.2.0.1:53": false, "127.0.0.1:443": false, "169.254.169.254:80": false, "0.0.0.0:80": false, "[::1]:80": false, "[fc00::1]:80": true, "[fe80::1]:80": false, "[::ffff:127.0.0.1]:80": false,
		"10.250.9.9:6379": true, "10.252.255.255:6379": true, "10.251.3.4:6379": false, "[::ffff:10.251.3.4]:6379": false, "10.251.7.4:6379": true, "168.63.129.16:80": false, "168.63.129.17:80": true,
	} {
		if got := r.allows(netip.MustParseAddrPort(address)); got != want {
			t.Errorf("%s: got %v; want %v", address, got, want)
		}
	}
}

// Networks that a rule names are other machines: this one only where the rule
// says so.
func TestRulesOfThisMachine(t *testing.T) {
	own := ""
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			own = p.Addr().String()
		}
	}
	if own == "" {
		t.Skip("this machine has no address but the loopback's")
	}
	for _, c := range []struct {
		rule cf.SecurityRule
		want bool
	}{
		{cf.SecurityRule{Protocol: "all", Destination: "0.0.0.0-255.255.255.255"}, false},
		{cf.SecurityRule{Protocol: "tcp", Destination: "0.0.0.0/0", Ports: "9100"}, true},
		{cf.SecurityRule{Protocol: "all", Destination: own}, true},
	} {
		r := &Rules{rules: []cf.SecurityRule{c.rule}}
		if got := r.allows(netip.MustParseAddrPort(own + ":9100")); got != c.want {
			t.Errorf("%+v: got %t; want %t", c.rule, got, c.want)
		}
	}
}

// The daemon is led no further than the rules, by whatever form of an address; for an
// operator not to addresses that are always refused.
func TestConnectionsAreGuarded(t *testing.T) {
	n := egresstest.New(t)
	all := []cf.SecurityRule{{Protocol: "all", Destination: "0.0.0.0/0"}, {Protocol: "all", Destination: "::/0"}}
	for name, c := range map[string]struct {
		rules Rules
		guard egress.Guard
		want  error
	}{
		"of a space":    {Rules{rules: all}, egresstest.Strict, errOutOfReach},
		"an operator's": {Rules{anywhere: true}, egress.Guard{Operator: true}, egress.ErrAddress},
	} {
		dial := c.rules.Dial(Network{Where: c.guard})
		for _, target := range n.Refused(c.guard) {
			conn, err := dial(t.Context(), "tcp", target.Address)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %s (%s): got %v; want %v", name, target.Name, target.Address, err, c.want)
			}
			if err == nil {
				conn.Close()
			}
		}
	}
	if c := n.Connections(); c > 0 {
		t.Errorf("%d connections were made", c)
	}
}
