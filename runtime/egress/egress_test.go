package egress

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// ownAddress is one of this machine's that is no loopback's.
func ownAddress(t *testing.T) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			return p.Addr()
		}
	}
	t.Skip("this machine has no address but the loopback's")
	return netip.Addr{}
}

func TestGuard(t *testing.T) {
	containers := netip.MustParsePrefix("10.251.0.0/16")
	listeners := func(at netip.AddrPort) bool { return at.Port() == 443 }
	strict, local := Guard{Containers: containers, Listeners: listeners}, Guard{Local: true, Containers: containers}
	for _, c := range []struct {
		to            string
		strict, local bool
	}{
		{"127.0.0.1:80", false, true},
		{"127.0.0.1:443", false, true}, // a port of this machine alone
		{"[::1]:80", false, true},
		{"[::ffff:127.0.0.1]:80", false, true},
		{"[64:ff9b::127.0.0.1]:80", false, true},
		{"0.0.0.0:80", false, false},
		{"169.254.169.254:80", false, false},
		{"[::ffff:169.254.169.254]:80", false, false},
		{"[64:ff9b::169.254.169.254]:80", false, false},
		{"[fe80::1%lo]:80", false, false},
		{"[::]:80", false, false},
		{"[::127.0.0.1]:80", false, true},
		{"[2002:7f00:1::1]:80", false, true},
		{"[2002:a9fe:a9fe::1]:80", false, false},
		{"[2002:afb:304::]:80", false, false},
		{"[64:ff9b:1::169.254.169.254]:80", false, false},
		{"[64:ff9b:1:a9fe:a9:fe00::]:80", false, false},
		{"[2001:0:a9fe:a9fe::]:80", false, false},
		{"[2001:0:c000:201::5601:5601]:80", false, false}, // of a client at 169.254.169.254
		{"0.1.2.3:80", false, false},
		{"255.255.255.255:80", false, false},
		{"[fd00:ec2::254]:80", false, false},
		{"[fd20:ce::254]:80", false, false},
		{"168.63.129.16:80", false, false},
		{"100.100.100.200:80", false, false},
		{"224.0.0.1:80", false, false},
		{"10.251.3.4:6379", false, false},
		{"10.251.3.4:443", false, false},
		{"[::ffff:10.251.3.4]:6379", false, false},
		{"10.252.3.4:6379", true, true},
		{"192.0.2.1:514", true, true},
		{"[2001:db8::1]:443", true, true},
	} {
		to := netip.MustParseAddrPort(c.to)
		for name, g := range map[string]Guard{"strict": strict, "local": local} {
			want := c.strict
			if name == "local" {
				want = c.local
			}
			if err := g.Check(to); (err == nil) != want || err != nil && !errors.Is(err, ErrAddress) {
				t.Errorf("%s: %s: got %v; want it let through: %t", name, c.to, err, want)
			}
		}
	}
}

// A service that listens at all addresses of the machine may be behind a
// firewall for all but the machine itself.
func TestOwnAddresses(t *testing.T) {
	own := ownAddress(t)
	g := Guard{Listeners: func(at netip.AddrPort) bool { return at.Port() == 443 }}
	if err := g.Check(netip.AddrPortFrom(own, 9100)); !errors.Is(err, ErrAddress) {
		t.Errorf("%s: got %v; want it refused", own, err)
	}
	if err := g.Check(netip.AddrPortFrom(own, 443)); err != nil {
		t.Errorf("%s: got %v of a door", own, err)
	}
	if err := (Guard{Local: true}).Check(netip.AddrPortFrom(own, 9100)); err != nil {
		t.Errorf("%s: got %v; want it allowed", own, err)
	}
}
