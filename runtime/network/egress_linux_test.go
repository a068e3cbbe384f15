package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// world is a namespace that stands for all other networks.
type world struct {
	netns string
	addr  netip.Addr
	host  netip.Addr // an address of the host's that is not a container's gateway
}

func newWorld(t *testing.T, n *Network) world {
	t.Helper()
	// The benchmarking range of RFC 2544, made to fit the network's random one.
	b := n.cfg.Subnet.Addr().As4()
	host, addr := netip.AddrFrom4([4]byte{198, 18, b[2], 1}), netip.AddrFrom4([4]byte{198, 18, b[2], 2})
	w, err := newWiring("w"+n.cfg.LinkPrefix, host)
	if err != nil {
		t.Fatal(err)
	}
	s := slot{file: filepath.Join(t.TempDir(), "world"), link: "w" + n.cfg.LinkPrefix, address: addr}
	t.Cleanup(func() {
		if err := errors.Join(unpin(s.file), w.dismantle()); err != nil {
			t.Error(err)
		}
		w.host.Close()
	})
	if err := w.build(s); err != nil {
		t.Fatal(err)
	}
	return world{netns: s.file, addr: addr, host: host}
}

func (w world) port(p int) string { return fmt.Sprintf("%s:%d", w.addr, p) }

func set(t *testing.T, n *Network, policies ...Policy) {
	t.Helper()
	if err := n.Set(t.Context(), policies); err != nil {
		t.Fatal(err)
	}
}

func (a Attachment) allow(rules ...Rule) Policy { return Policy{Address: a.Address, Egress: rules} }

func rule(t *testing.T, protocol, destination, ports string) Rule {
	t.Helper()
	r := Rule{Protocol: protocol, Destinations: ranges(t, destination), ICMPType: -1, ICMPCode: -1}
	if ports != "" {
		var err error
		if r.Ports, err = ParsePorts(ports); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func wantReached(t *testing.T, a Attachment, addr string, reached bool) {
	t.Helper()
	got, err := dialFrom(t, a, addr)
	if reached && (err != nil || got != "hello") {
		t.Errorf("%s: got %q, %v; want hello", addr, got, err)
	}
	if !reached && !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%s: got %q, %v; want connection refused", addr, got, err)
	}
}

func TestEgressRules(t *testing.T) {
	cfg := testConfig(t, 24)
	gateway := cfg.Subnet.Addr().Next()
	cfg.Router = []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:7443"), netip.AddrPortFrom(gateway, 7444), netip.AddrPortFrom(gateway, 7445), netip.MustParseAddrPort("127.0.0.1:7080")}
	n := newNetwork(t, cfg)
	w := newWorld(t, n)
	a, b := acquire(t, n, "a"), acquire(t, n, "b")
	for _, listens := range []string{w.host.String() + ":7443", w.host.String() + ":7444", gateway.String() + ":7444"} {
		serve(t, "", listens)
	}
	for _, port := range []int{80, 81, 443} {
		serve(t, w.netns, w.port(port))
	}
	serve(t, "", w.host.String()+":7080")
	serve(t, b.NetNS, ":80")
	all := rule(t, "all", "0.0.0.0/0", "")
	for _, c := range []struct {
		name    string
		rules   []Rule
		reached map[string]bool
	}{
		{"nothing", nil, map[string]bool{w.port(80): false}},
		{"a port", []Rule{rule(t, "tcp", w.addr.String(), "80")}, map[string]bool{w.port(80): true, w.port(81): false}},
		{"ports", []Rule{rule(t, "tcp", w.addr.String(), "80-81,443")}, map[string]bool{w.port(80): true, w.port(81): true, w.port(443): true}},
		{"another protocol", []Rule{rule(t, "udp", w.addr.String(), "")}, map[string]bool{w.port(80): false}},
		{"another address", []Rule{rule(t, "tcp", "198.18.0.0-198.18.0.1,9.0.0.0/8", "")}, map[string]bool{w.port(80): false}},
		{"two rules", []Rule{rule(t, "udp", "0.0.0.0/0", "53"), rule(t, "tcp", "198.0.0.0/8", "")}, map[string]bool{w.port(81): true}},
		{"everything, but not containers", []Rule{all}, map[string]bool{
			w.port(80): true, w.host.String() + ":7080": false, b.Address.String() + ":80": false, a.Gateway.String() + ":7080": false,
		}},
		{"the router", []Rule{all}, map[string]bool{w.host.String() + ":7443": true, gateway.String() + ":7444": true, w.host.String() + ":7444": false}},
		{"the router, with other public networks", []Rule{rule(t, "tcp", "9.0.0.0/8", "")}, map[string]bool{w.host.String() + ":7443": true, gateway.String() + ":7444": true}},
		{"not the router, with private networks", []Rule{rule(t, "tcp", "10.0.0.0/8", "")}, map[string]bool{w.host.String() + ":7443": false, gateway.String() + ":7444": false}},
		{"not the router", []Rule{rule(t, "tcp", w.addr.String(), "")}, map[string]bool{w.host.String() + ":7443": false}},
		{"ports of the host", []Rule{rule(t, "tcp", "198.18.0.0/15", "7080")}, map[string]bool{w.host.String() + ":7080": true}},
		{"the host", []Rule{rule(t, "all", w.host.String(), "")}, map[string]bool{w.host.String() + ":7080": true}},
		{"one container", []Rule{rule(t, "tcp", b.Address.String(), "80")}, map[string]bool{b.Address.String() + ":80": true, w.port(80): false}},
	} {
		set(t, n, a.allow(c.rules...), b.allow(all))
		for addr, reached := range c.reached {
			t.Run(c.name+" "+addr, func(t *testing.T) { wantReached(t, a, addr, reached) })
		}
	}
	set(t, n, a.allow(all))
	_, err := dialFrom(t, a, gateway.String()+":7445")
	if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v from a router that does not listen; want no answer", err)
	}
}

func TestLoggedAndICMPRules(t *testing.T) {
	n := newNetwork(t, testConfig(t, 24))
	w := newWorld(t, n)
	a := acquire(t, n, "a")
	ping := rule(t, "icmp", "198.18.0.0/15", "")
	ping.ICMPType, ping.ICMPCode, ping.Log = 8, 0, true
	set(t, n, a.allow(ping))
	if err := echo(t, a, w.addr); err != nil {
		t.Errorf("got %v; want an answer to a ping", err)
	}
	ping.ICMPType = 13
	set(t, n, a.allow(ping))
	if err := echo(t, a, w.addr); err == nil {
		t.Error("got an answer to a ping that no rule allows")
	}
}

// echo pings addr as a program without capabilities does.
func echo(t *testing.T, a Attachment, addr netip.Addr) error {
	t.Helper()
	_, err := inside(t, a.NetNS, func() (int, error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 500_000}); err != nil {
			return 0, err
		}
		request := []byte{8, 0, 0, 0, 0, 0, 0, 1}
		if err := unix.Sendto(fd, request, 0, &unix.SockaddrInet4{Addr: addr.As4()}); err != nil {
			return 0, err
		}
		n, _, err := unix.Recvfrom(fd, make([]byte, 64), 0)
		return n, err
	})
	return err
}

// TestSource is about whom the world sees: the host, and never another address.
func TestSource(t *testing.T) {
	n := newNetwork(t, testConfig(t, 24))
	w := newWorld(t, n)
	a, b := acquire(t, n, "a"), acquire(t, n, "b")
	set(t, n, a.allow(rule(t, "all", "0.0.0.0/0", "")), b.allow(rule(t, "all", "0.0.0.0/0", "")))
	conn, err := inside(t, w.netns, func() (net.PacketConn, error) { return net.ListenPacket("udp4", w.port(9)) })
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, from := range []netip.Addr{b.Address, netip.MustParseAddr("203.0.113.7"), w.host} {
		sendAs(t, a, from, w.addr)
	}
	sendAs(t, a, a.Address, w.addr)
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	size, sender, err := conn.ReadFrom(buf)
	if err != nil || string(buf[:size]) != a.Address.String() || strings.HasPrefix(sender.String(), a.Address.String()) {
		t.Errorf("got %q from %v, %v; want the container's own packet from the host's address", buf[:size], sender, err)
	}
}

// sendAs sends a packet with a source address that the container may not have.
func sendAs(t *testing.T, a Attachment, source, to netip.Addr) {
	t.Helper()
	_, err := inside(t, a.NetNS, func() (int, error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1); err != nil {
			return 0, err
		}
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: source.As4()}); err != nil {
			return 0, err
		}
		return 0, unix.Sendto(fd, []byte(source.String()), 0, &unix.SockaddrInet4{Addr: to.As4(), Port: 9})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRestart(t *testing.T) {
	cfg := testConfig(t, 24)
	n := newNetwork(t, cfg)
	w := newWorld(t, n)
	serve(t, w.netns, w.port(80))
	a := acquire(t, n, "a")
	policy := a.allow(rule(t, "tcp", "198.18.0.0/15", "80"))
	set(t, n, policy)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if ids, err := again.List(); err != nil || len(ids) != 1 || ids[0] != "a" {
		t.Errorf("got %v, %v; want a", ids, err)
	}
	if got := acquire(t, again, "a"); got != a {
		t.Errorf("got %+v; want %+v", got, a)
	}
	wantReached(t, a, w.port(80), true)
	set(t, again, policy)
	wantReached(t, a, w.port(80), true)
	set(t, again)
	wantReached(t, a, w.port(80), false)
	if err := again.Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if b := acquire(t, again, "b"); b.Address == a.Address {
		t.Errorf("got address %s again at once", b.Address)
	}
}

// TestShareOverRestart is about a network that two containers have: also after
// a restart it lasts until both are released.
func TestShareOverRestart(t *testing.T) {
	cfg := testConfig(t, 24)
	n := newNetwork(t, cfg)
	w := newWorld(t, n)
	serve(t, w.netns, w.port(80))
	a := acquire(t, n, "a")
	if b, err := n.Share(t.Context(), "b", "a"); err != nil || b != a {
		t.Fatalf("got %+v, %v; want %+v", b, err, a)
	}
	policy := a.allow(rule(t, "tcp", "198.18.0.0/15", "80"))
	set(t, n, policy)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	set(t, again, policy)
	if err := again.Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantReached(t, a, w.port(80), true)
	if err := again.Release(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(a.NetNS); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for an unused namespace; want it gone", err)
	}
}

// TestRestartWithNothingLeft is about containers that went while no daemon was
// there: their rules go too.
func TestRestartWithNothingLeft(t *testing.T) {
	cfg := testConfig(t, 24)
	n := newNetwork(t, cfg)
	w := newWorld(t, n)
	serve(t, w.netns, w.port(80))
	a := acquire(t, n, "a")
	set(t, n, a.allow(rule(t, "tcp", "198.18.0.0/15", "80")))
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	wantReached(t, a, w.port(80), true)
	set(t, again)
	wantReached(t, a, w.port(80), false)
	set(t, again, a.allow(rule(t, "tcp", "198.18.0.0/15", "80")))
	wantReached(t, a, w.port(80), true)
}

func TestForeignPolicy(t *testing.T) {
	n := newNetwork(t, testConfig(t, 24))
	if err := n.Set(t.Context(), []Policy{{Address: n.slot(0).address, Egress: []Rule{rule(t, "sctp", "1.1.1.1", "")}}}); err == nil {
		t.Error("got no error for an unknown protocol")
	}
	a, w := acquire(t, n, "a"), newWorld(t, n)
	serve(t, w.netns, w.port(80))
	set(t, n, a.allow(rule(t, "tcp", "198.18.0.0/15", "80")),
		Policy{Address: netip.MustParseAddr("192.0.2.1"), Egress: []Rule{rule(t, "tcp", "1.1.1.1", "")}})
	wantReached(t, a, w.port(80), true)
	set(t, n)
}

// TestFullSubnet uses up all addresses, and some again after their release.
func TestFullSubnet(t *testing.T) {
	n := newNetwork(t, testConfig(t, 29))
	for i := range n.capacity() {
		eventually(t, "an address is free", func() bool {
			_, err := n.Acquire(t.Context(), fmt.Sprint(i))
			return err == nil
		})
	}
	if a, err := n.Acquire(t.Context(), "more"); err == nil {
		t.Errorf("got %+v; want no address left", a)
	}
	if err := n.Release(t.Context(), "0"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the address is free again", func() bool {
		_, err := n.Acquire(t.Context(), "more")
		return err == nil
	})
}

// TestNamespace checks what a namespace gives its programs.
func TestNamespace(t *testing.T) {
	n := newNetwork(t, testConfig(t, 24))
	a := acquire(t, n, "a")
	eventually(t, "the links are up", func() bool {
		links, err := inside(t, a.NetNS, netlink.LinkList)
		return err == nil && len(links) == 2 && links[0].Attrs().Name == "lo" && links[1].Attrs().Name == "eth0" &&
			links[0].Attrs().Flags&net.FlagUp != 0 && links[1].Attrs().OperState == netlink.OperUp
	})
	v6, err := inside(t, a.NetNS, func() (int, error) {
		addrs, err := netlink.AddrList(nil, netlink.FAMILY_V6)
		return len(addrs), err
	})
	if err != nil || v6 != 0 {
		t.Errorf("got %d IPv6 addresses, %v; want none", v6, err)
	}
}

// BenchmarkAttach measures 250 attachments with a policy each, and their release.
func BenchmarkAttach(b *testing.B) {
	const count = 250
	n := newNetwork(b, testConfig(b, 22))
	world := []Rule{{Protocol: "tcp", Destinations: []Range{rangeOf(netip.MustParsePrefix("8.0.0.0/8"))}}}
	var attach, policy, release time.Duration
	rounds := 0
	for ; b.Loop(); rounds++ {
		begin := time.Now()
		var policies []Policy
		for i := range count {
			policies = append(policies, acquire(b, n, fmt.Sprint(i)).allow(world...))
		}
		attach += time.Since(begin)
		begin = time.Now()
		if err := n.Set(context.Background(), policies); err != nil {
			b.Fatal(err)
		}
		policy += time.Since(begin)
		begin = time.Now()
		for i := range count {
			if err := n.Release(b.Context(), fmt.Sprint(i)); err != nil {
				b.Fatal(err)
			}
		}
		release += time.Since(begin)
	}
	per := func(d time.Duration) float64 { return d.Seconds() / float64(rounds) }
	b.ReportMetric(per(attach), "s/attach-250")
	b.ReportMetric(per(policy), "s/set-250")
	b.ReportMetric(per(release), "s/release-250")
}

// TestNamesAreOpenToAll wants port 53 of the gateway, and nothing else of the
// host, open to one that may reach nothing.
func TestNamesAreOpenToAll(t *testing.T) {
	cfg := testConfig(t, 24)
	cfg.Names = true
	n := newNetwork(t, cfg)
	w := newWorld(t, n)
	a := acquire(t, n, "a")
	for _, addr := range []string{a.Gateway.String() + ":53", a.Gateway.String() + ":54", w.host.String() + ":53"} {
		serve(t, "", addr)
	}
	set(t, n)
	wantReached(t, a, a.Gateway.String()+":53", true)
	wantReached(t, a, a.Gateway.String()+":54", false)
	wantReached(t, a, w.host.String()+":53", false)
	for port, refused := range map[string]bool{":53": false, ":54": true} {
		_, err := inside(t, a.NetNS, func() (int, error) { return askNobody(a.Gateway.String() + port) })
		if errors.Is(err, syscall.ECONNREFUSED) != refused {
			t.Errorf("UDP %s, without a listener: got %v; want a refusal %v", port, err, refused)
		}
	}
}

func askNobody(addr string) (int, error) {
	c, err := net.Dial("udp4", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		return 0, err
	}
	if _, err := c.Write([]byte("?")); err != nil {
		return 0, err
	}
	return c.Read(make([]byte, 1))
}
