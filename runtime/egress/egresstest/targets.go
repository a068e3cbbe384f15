// Package egresstest provides addresses that the daemon must not connect to,
// as real listeners and as names of a resolver that answers as an attacker's
// would.
package egresstest

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"cupola/runtime/egress"
)

// containers stands for the network of containers. It is part of the loopback,
// so that it can be listened at.
var containers = netip.MustParsePrefix("127.9.0.0/16")

// Strict is the guard of a daemon, Local that of one with --allow-loopback.
var (
	Strict = egress.Guard{Containers: containers}
	Local  = egress.Guard{Containers: containers, Local: true}
)

// Target is where a user would lead the daemon.
type Target struct {
	Name    string
	Address string // host:port
	Local   bool   // whether --allow-loopback lets users name it
	Always  bool   // whether it is refused to operators, too
}

// Net is all targets, and what came of them.
type Net struct {
	Targets []Target
	hits    atomic.Int64
}

// Connections is how many connections were made to targets.
func (n *Net) Connections() int64 { return n.hits.Load() }

// New listens at the targets until the test ends, and resolves names for the
// whole process meanwhile: the test may not be parallel.
func New(t *testing.T) *Net {
	t.Helper()
	n := &Net{}
	loopback, container := n.listen(t, "127.0.0.1:0"), n.listen(t, "127.9.0.1:0")
	port := func(host, of string) string {
		_, p, err := net.SplitHostPort(of)
		if err != nil {
			t.Fatal(err)
		}
		return net.JoinHostPort(host, p)
	}
	n.resolve(t, map[string][]string{
		"loopback.test.": {"127.0.0.1"}, "container.test.": {"127.9.0.1"}, "cloud.test.": {"169.254.169.254"},
		"rebinding.test.": {"169.254.169.254", "127.9.0.1", "0.0.0.0"},
	})
	n.Targets = []Target{
		{Name: "loopback", Address: loopback, Local: true},
		{Name: "loopback by its name", Address: port("localhost", loopback), Local: true},
		{Name: "loopback by another's name", Address: port("loopback.test", loopback), Local: true},
		{Name: "loopback in IPv6", Address: port("::ffff:127.0.0.1", loopback), Local: true},
		{Name: "container", Address: container},
		{Name: "container by a name", Address: port("container.test", container)},
		{Name: "container in IPv6", Address: port("::ffff:127.9.0.1", container)},
		{Name: "rebinding", Address: port("rebinding.test", container)},
		{Name: "no address", Address: port("0.0.0.0", loopback), Always: true},
		{Name: "no address of IPv6", Address: port("::", loopback), Always: true},
		{Name: "a cloud's metadata", Address: "169.254.169.254:80", Always: true},
		{Name: "a cloud's metadata by a name", Address: "cloud.test:80", Always: true},
		{Name: "a cloud's metadata in IPv6", Address: "[::ffff:169.254.169.254]:80", Always: true},
		{Name: "a cloud's metadata by NAT64", Address: "[64:ff9b::a9fe:a9fe]:80", Always: true},
		{Name: "a cloud's metadata by 6to4", Address: "[2002:a9fe:a9fe::1]:80", Always: true},
		{Name: "a cloud's metadata of IPv6", Address: "[fd00:ec2::254]:80", Always: true},
	}
	if own := ownAddress(); own != "" {
		n.Targets = append(n.Targets, Target{Name: "this machine", Address: n.listen(t, net.JoinHostPort(own, "0")), Local: true})
	}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		n.Targets = append(n.Targets, Target{Name: "loopback of IPv6", Address: n.serve(t, l), Local: true})
	}
	return n
}

// Refused are the targets that a guard has to refuse.
func (n *Net) Refused(g egress.Guard) (all []Target) {
	for _, target := range n.Targets {
		if target.Always || !g.Operator && !(g.Local && target.Local) {
			all = append(all, target)
		}
	}
	return all
}

func (n *Net) listen(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	return n.serve(t, l)
}

func (n *Net) serve(t *testing.T, l net.Listener) string {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.hits.Add(1)
			c.Close()
		}
	}()
	return l.Addr().String()
}

// ownAddress is one of this machine's that is of no loopback interface; "" for
// none. Daemons of other tests add addresses to the loopback interface, and take
// them away at any time.
func ownAddress() string {
	interfaces, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		all, _ := i.Addrs() // none of one that has just gone
		for _, a := range all {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && p.Addr().Is4() && !p.Addr().IsLinkLocalUnicast() {
				return p.Addr().String()
			}
		}
	}
	return ""
}

// resolve answers for names; no others exist.
func (n *Net) resolve(t *testing.T, names map[string][]string) {
	t.Helper()
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	was := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = was
		server.Close()
	})
	go func() {
		b := make([]byte, 1500)
		for {
			size, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			if answer := answer(b[:size], names); answer != nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
}

func answer(question []byte, names map[string][]string) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	addresses, ok := names[q.Name.String()]
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addresses {
		if q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
				Body: &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()}})
		}
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}
