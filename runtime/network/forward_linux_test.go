package network

import (
	"net/netip"
	"os"
	"strings"
	"testing"
)

// TestForwardingStays has another program rely on IP forwarding when a Network
// ends that turned it on. It runs in its own network namespace.
func TestForwardingStays(t *testing.T) {
	if !apart(t) {
		return
	}
	cfg := testConfig(t, 24)
	read := func() string {
		t.Helper()
		now, err := os.ReadFile(forwardControl)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(now))
	}
	if err := os.WriteFile(forwardControl, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	everywhere := []Range{{netip.MustParseAddr("1.0.0.0"), netip.MustParseAddr("9.255.255.255")}}
	err = n.Set(t.Context(), []Policy{{Address: cfg.Subnet.Addr().Next().Next(), Egress: []Rule{{Protocol: "all", Destinations: everywhere}}}})
	if err != nil || read() != "1" {
		t.Errorf("got forwarding %s, %v; want it on for containers", read(), err)
	}
	tearDown(t, n)
	if read() != "1" {
		t.Errorf("got forwarding %s; want it left on", read())
	}
}
