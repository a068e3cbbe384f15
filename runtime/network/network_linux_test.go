package network

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
}

// testConfig has names and addresses that no other test uses.
func testConfig(t testing.TB, bits int) Config {
	t.Helper()
	needRoot(t)
	var b [3]byte
	_, _ = rand.Read(b[:])
	subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 64 + b[0]%64, b[1], 0}), bits).Masked()
	name := strings.ToLower(rand.Text()[:5])
	return Config{Dir: filepath.Join(t.TempDir(), "net"), Subnet: subnet, Table: "cupolatest-" + name, LinkPrefix: "c" + name}
}

func newNetwork(t testing.TB, cfg Config) *Network {
	t.Helper()
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tearDown(t, n) })
	return n
}

// tearDown checks that nothing is left, whatever the test has done.
func tearDown(t testing.TB, n *Network) {
	t.Helper()
	if err := n.Teardown(context.Background()); err != nil {
		t.Error(err)
	}
	eventually(t, "links and addresses are gone", func() bool { return leftovers(t, n.cfg) == "" })
}

func leftovers(t testing.TB, cfg Config) string {
	var found []string
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Name, cfg.LinkPrefix) {
			found = append(found, l.Name)
		}
	}
	tables, err := exec.Command("nft", "list", "tables").Output()
	if err != nil || strings.Contains(string(tables), cfg.Table+"\n") {
		found = append(found, "table")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), cfg.Dir) {
		found = append(found, "mounts")
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil || strings.Contains(fmt.Sprint(addrs), cfg.Subnet.Addr().Next().String()+"/") {
		found = append(found, "address")
	}
	return strings.Join(found, " ")
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// inside runs f on a thread in the namespace.
func inside[T any](t testing.TB, netns string, f func() (T, error)) (value T, err error) {
	t.Helper()
	ns, err := os.Open(netns)
	if err != nil {
		return value, err
	}
	defer ns.Close()
	err = inNamespace(func() error { return unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET) }, func() (err error) {
		value, err = f()
		return err
	})
	return value, err
}

// serve answers every connection to addr in the namespace ("" is the host's)
// with "hello".
func serve(t testing.TB, netns, addr string) {
	t.Helper()
	listen := func() (net.Listener, error) { return net.Listen("tcp4", addr) }
	var l net.Listener
	var err error
	if netns == "" {
		l, err = listen()
	} else {
		l, err = inside(t, netns, listen)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello")
			c.Close()
		}
	}()
}

func dial(addr string) (string, error) {
	c, err := net.DialTimeout("tcp4", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	data, err := io.ReadAll(c)
	return string(data), err
}

func dialFrom(t testing.TB, a Attachment, addr string) (string, error) {
	t.Helper()
	return inside(t, a.NetNS, func() (string, error) { return dial(addr) })
}

func acquire(t testing.TB, n *Network, id string) Attachment {
	t.Helper()
	a, err := n.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTeardownCutsLinks has somebody keep a container's namespace.
func TestTeardownCutsLinks(t *testing.T) {
	cfg := testConfig(t, 28)
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	keep, err := os.Open(acquire(t, n, "a").NetNS)
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	if err := n.Teardown(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "links and addresses are gone", func() bool { return leftovers(t, cfg) == "" })
}

func TestHostReachesContainer(t *testing.T) {
	n := newNetwork(t, testConfig(t, 24))
	a := acquire(t, n, "one")
	serve(t, a.NetNS, ":80")
	got, err := dial(a.Address.String() + ":80")
	if err != nil || got != "hello" {
		t.Errorf("got %q, %v; want hello", got, err)
	}
}

func TestDeniedByDefault(t *testing.T) {
	n := newNetwork(t, testConfig(t, 24))
	a, b := acquire(t, n, "a"), acquire(t, n, "b")
	all := []Rule{{Protocol: "all", Destinations: []Range{rangeOf(netip.MustParsePrefix("0.0.0.0/0"))}}}
	if err := n.Set(t.Context(), []Policy{{Address: b.Address, Egress: all}}); err != nil {
		t.Fatal(err)
	}
	serve(t, "", a.Gateway.String()+":7001")
	serve(t, b.NetNS, ":7002")
	for _, addr := range []string{a.Gateway.String() + ":7001", b.Address.String() + ":7002"} {
		if got, err := dialFrom(t, a, addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: got %q, %v; want connection refused", addr, got, err)
		}
	}
}
