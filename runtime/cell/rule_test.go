package cell

import (
	"net/netip"
	"testing"

	"cupola/runtime/lrp"
	"cupola/runtime/network"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func span(from, to string) network.Range {
	return network.Range{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to)}
}

func TestEgressRules(t *testing.T) {
	tests := []struct {
		name string
		rule lrp.EgressRule
		want []network.Rule
		err  string
	}{
		{"all", lrp.EgressRule{Protocol: "all", Destinations: []string{"0.0.0.0/0"}},
			[]network.Rule{{Protocol: "all", Destinations: []network.Range{span("0.0.0.0", "255.255.255.255")}}}, ""},
		{"ports", lrp.EgressRule{Protocol: "tcp", Destinations: []string{"10.0.0.1-10.0.0.9", "11.0.0.0/8"}, Ports: "443,80-90", Log: true},
			[]network.Rule{{
				Protocol: "tcp", Log: true,
				Destinations: []network.Range{span("10.0.0.1", "10.0.0.9"), span("11.0.0.0", "11.255.255.255")},
				Ports:        []network.PortRange{{From: 443, To: 443}, {From: 80, To: 90}},
			}}, ""},
		{"commas", lrp.EgressRule{Protocol: "icmp", Destinations: []string{"1.1.1.1,2.2.2.2"}, ICMPType: 8, ICMPCode: -1},
			[]network.Rule{{
				Protocol: "icmp", ICMPType: 8, ICMPCode: -1,
				Destinations: []network.Range{span("1.1.1.1", "1.1.1.1"), span("2.2.2.2", "2.2.2.2")},
			}}, ""},
		{"IPv6", lrp.EgressRule{Protocol: "all", Destinations: []string{"::/0"}}, nil, ""},
		{"ICMPv6", lrp.EgressRule{Protocol: "icmpv6", Destinations: []string{"::/0"}}, nil, ""},
		{"protocol", lrp.EgressRule{Protocol: "sctp", Destinations: []string{"1.1.1.1"}}, nil, `egress rule: unknown protocol "sctp"`},
		{"no ports", lrp.EgressRule{Protocol: "udp", Destinations: []string{"1.1.1.1"}}, nil, `egress rule: parse ports "": not ports from 1 to 65535`},
		{"no address", lrp.EgressRule{Protocol: "all", Destinations: []string{"host"}}, nil, `egress rule: parse destination "host": not an address, CIDR block or range`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := EgressRules([]lrp.EgressRule{tt.rule})
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("got error %v; want %s", err, tt.err)
			}
		})
	}
}

func FuzzEgressRule(f *testing.F) {
	f.Add("tcp", "10.0.0.0/8,1.1.1.1-1.1.1.9", "443,80-90")
	f.Add("all", "::/0", "")
	f.Fuzz(func(t *testing.T, protocol, destination, ports string) {
		r, err := egressRule(lrp.EgressRule{Protocol: protocol, Destinations: []string{destination}, Ports: ports})
		if err != nil {
			return
		}
		for _, d := range r.Destinations {
			if !d.From.Is4() || !d.To.Is4() || d.To.Less(d.From) {
				t.Errorf("got %v; want a range of IPv4 addresses", d)
			}
		}
		for _, p := range r.Ports {
			if p.From == 0 || p.To < p.From {
				t.Errorf("got %v; want ports", p)
			}
		}
	})
}
