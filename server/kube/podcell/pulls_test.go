package podcell

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestReachedAt has policies allow what they may see of a registry: its address, and behind a Service this machine's, at the port
// that it listens at.
func TestReachedAt(t *testing.T) {
	own := netip.MustParseAddr("192.0.2.1")
	listening := func(advertised, address string) *Pulls {
		p := &Pulls{}
		if err := p.Advertise(t.Context(), advertised, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if err := p.Listen(t.Context(), address); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	behind := listening("198.51.100.7:5443", "127.0.0.1:0")
	port, ok := behind.listensAt()
	if want := []netip.AddrPort{netip.MustParseAddrPort("198.51.100.7:5443"), netip.AddrPortFrom(own, port)}; !ok || !slices.Equal(behind.reachedAt([]netip.Addr{own}), want) {
		t.Errorf("behind a Service: got %v; want %v", behind.reachedAt([]netip.Addr{own}), want)
	}
	p := &Pulls{at: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:5443")}}
	if got := p.reachedAt([]netip.Addr{own, netip.MustParseAddr("192.0.2.2")}); !slices.Equal(got, p.at) {
		t.Errorf("at an address of this machine: got %v", got)
	}
	if err := p.Listen(t.Context(), "198.51.100.7:5443"); err == nil || !strings.Contains(err.Error(), "198.51.100.7:5443") {
		t.Errorf("listen at another's address: got %v", err)
	}
}
