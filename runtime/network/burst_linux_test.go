package network

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
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

// TestRulesAfterAFailure has the kernel lack memory, and then descriptors, when
// rules are set and what it has is read again. The next rules are set all the
// same.
func TestRulesAfterAFailure(t *testing.T) {
	n := newNetwork(t, testConfig(t, 23))
	first, second := n.cfg.Subnet.Addr().Next().Next(), n.cfg.Subnet.Addr().Next().Next().Next()
	to := netip.MustParseAddr("1.2.3.4")
	egress := []Rule{{Protocol: "all", Destinations: []Range{{to, to}}}}
	if err := n.Set(t.Context(), []Policy{{Address: first, Egress: egress}}); err != nil {
		t.Fatal(err)
	}
	short, err := nftables.New(nftables.WithTestDial(func([]netlink.Message) ([]netlink.Message, error) { return nil, unix.ENOMEM }))
	if err != nil {
		t.Fatal(err)
	}
	_ = n.filter.conn.CloseLasting()
	n.filter.conn = short
	both := []Policy{{Address: first, Egress: egress}, {Address: second, Egress: egress}}
	withoutDescriptors(t, func() {
		for range 2 {
			if err := n.filter.set(both); !errors.Is(err, unix.ENOMEM) && !errors.Is(err, unix.EMFILE) {
				t.Errorf("got %v; want ENOMEM or EMFILE", err)
			}
		}
	})
	if err := n.filter.set(both); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("nft", "list", "map", n.cfg.Table, mapName).Output()
	if err != nil || !strings.Contains(string(out), first.String()) || !strings.Contains(string(out), second.String()) {
		t.Errorf("got %s, %v; want both addresses", out, err)
	}
}

// TestAnswersThatAreLost drops all that the kernel answers. A change fails then,
// rather than hold up all others, and the next one takes effect.
func TestAnswersThatAreLost(t *testing.T) {
	n := newNetwork(t, testConfig(t, 24))
	deaf, err := bpf.Assemble([]bpf.Instruction{bpf.RetConstant{Val: 0}})
	if err != nil {
		t.Fatal(err)
	}
	to := netip.MustParseAddr("1.2.3.4")
	all := []Policy{{Address: n.cfg.Subnet.Addr().Next().Next(), Egress: []Rule{{Protocol: "all", Destinations: []Range{{to, to}}}}}}
	want, rules, err := n.filter.compile(all)
	if err != nil {
		t.Fatal(err)
	}
	n.filter.mu.Lock() // the goroutine that watches the rules would reconnect first
	if err := n.filter.socket.(*netlink.Conn).SetBPF(deaf); err != nil {
		t.Error(err)
	}
	n.filter.answerTime = 50 * time.Millisecond
	err = n.filter.retry(func() error { return n.filter.change(want, rules) })
	n.filter.answerTime = answerTime
	n.filter.mu.Unlock()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v; want a deadline that passed", err)
	}
	if err := n.filter.set(all); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("nft", "list", "map", n.cfg.Table, mapName).Output()
	if err != nil || !strings.Contains(string(out), all[0].Address.String()) {
		t.Errorf("got %s, %v; want the address", out, err)
	}
}

// TestReleasedContainerHasNoRules holds that an address has no rules once its container is released:
// the next container with the address must not have them for a moment.
func TestReleasedContainerHasNoRules(t *testing.T) {
	n := newNetwork(t, testConfig(t, 24))
	a, b := acquire(t, n, "a"), acquire(t, n, "b")
	to := rule(t, "tcp", "1.2.3.4", "80")
	set(t, n, a.allow(to), b.allow(to))
	if err := n.Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("nft", "list", "map", n.cfg.Table, mapName).Output()
	if err != nil || strings.Contains(string(out), a.Address.String()+" ") || !strings.Contains(string(out), b.Address.String()+" ") {
		t.Errorf("got %s, %v; want %s alone", out, err, b.Address)
	}
}

// withoutDescriptors calls f while this process can open no file.
func withoutDescriptors(t *testing.T, f func()) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}
