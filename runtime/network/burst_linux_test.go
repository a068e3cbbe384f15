package network

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"
)

// TestManyRules sets more rules at once than the kernel's answers to them fit
// into a socket's default buffer.
func TestManyRules(t *testing.T) {
	n := newNetwork(t, testConfig(t, 22))
	const containers, each = 40, 30
	var policies []Policy
	addr := n.cfg.Subnet.Addr().Next()
	for c := range containers {
		addr = addr.Next()
		p := Policy{Address: addr}
		for r := range each {
			to := netip.AddrFrom4([4]byte{1, byte(c), byte(r), 1})
			p.Egress = append(p.Egress, Rule{Protocol: "tcp", Destinations: []Range{{to, to}}, Ports: []PortRange{{80, 80}}})
		}
		policies = append(policies, p)
	}
	for round := range 2 { // the second is on what the first has made
		if err := n.Set(t.Context(), policies); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	out, err := exec.Command("nft", "list", "table", n.cfg.Table).Output()
	if got, want := strings.Count(string(out), "ip daddr { 1."), containers*each; err != nil || got != want {
		t.Errorf("got %d rules, %v; want %d", got, err, want)
	}
	if err := n.Set(t.Context(), policies[:1]); err != nil {
		t.Fatal(err)
	}
	out, err = exec.Command("nft", "list", "table", n.cfg.Table).Output()
	if got := strings.Count(string(out), "ip daddr { 1."); err != nil || got != each {
		t.Errorf("got %d rules, %v; want those of one container", got, err)
	}
	if n.filter.buffer <= netlinkBuffer {
		t.Errorf("got a buffer of %d bytes; want one that has grown", n.filter.buffer)
	}
}
