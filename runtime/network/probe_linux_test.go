package network

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

func TestProbesWhereContainersRun(t *testing.T) {
	needRoot(t)
	for name, probe := range map[string]func() error{"filter": ProbeFilter, "link": ProbeLink} {
		if err := probe(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheFirstThreadStays makes many namespaces at once: none of them is ever that of the
// process's first thread, by which /proc/net is read.
func TestTheFirstThreadStays(t *testing.T) {
	needRoot(t)
	var makers sync.WaitGroup
	for range 20 {
		makers.Go(func() {
			for range 20 {
				err := elsewhere(func() error {
					if unix.Gettid() == unix.Getpid() {
						return errors.New("the first thread is in another namespace")
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	makers.Wait()
}

// TestLookFindsWhatNetworksHave looks at a network that serves one container.
func TestLookFindsWhatNetworksHave(t *testing.T) {
	cfg := testConfig(t, 24)
	n := newNetwork(t, cfg)
	a, err := n.Acquire(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Look()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.Tables, cfg.Table) || !slices.Contains(s.Links, a.HostLink) || !slices.Contains(s.Addresses, Address{a.Gateway, cfg.LinkPrefix}) {
		t.Errorf("got %+v; want table %s, link %s and address %s in it", s, cfg.Table, a.HostLink, a.Gateway)
	}
}

// TestLookFindsFirewalls looks at a network namespace with a policy like
// Docker's.
func TestLookFindsFirewalls(t *testing.T) {
	needRoot(t)
	var s Survey
	err := elsewhere(func() (err error) {
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		drop := nftables.ChainPolicyDrop
		table := conn.AddTable(&nftables.Table{Name: "filter", Family: nftables.TableFamilyIPv4})
		conn.AddChain(&nftables.Chain{Name: "FORWARD", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &drop})
		conn.AddChain(&nftables.Chain{Name: "INPUT", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter, Policy: &drop})
		if err := conn.Flush(); err != nil {
			return err
		}
		s, err = Look()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Closed{{Table: "filter", Chain: "FORWARD"}, {Table: "filter", Chain: "INPUT"}}
	if !slices.Equal(s.Closed, want) || len(s.Links) > 0 || len(s.Rules) > 0 {
		t.Errorf("got %+v; want %v", s, want)
	}
}

func TestStray(t *testing.T) {
	n := newNetwork(t, testConfig(t, 24))
	if _, err := n.Acquire(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if stray, err := n.Stray(); err != nil || len(stray) > 0 {
		t.Errorf("got %q, %v; want nothing", stray, err)
	}
	// A namespace that is not the Network's.
	const index = 200
	if err := n.wires.build(n.slot(index)); err != nil {
		t.Fatal(err)
	}
	stray, err := n.Stray()
	want := []string{"link " + n.slot(index).link, "network namespace " + n.slot(index).file}
	if err != nil || !slices.Equal(stray, want) {
		t.Errorf("got %q, %v; want %q", stray, err, want)
	}
	if err := unpin(n.slot(index).file); err != nil && err != unix.ENOENT {
		t.Fatal(err)
	}
	eventually(t, "nothing is stray", func() bool {
		stray, err := n.Stray()
		return err == nil && len(stray) == 0
	})
}
