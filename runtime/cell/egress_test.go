package cell

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"cupola/runtime/lrp"
	"cupola/runtime/network"
)

// reaches are the rules that the machine has, sorted, for each address.
func (m *machine) reaches() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, p := range m.policies {
		for _, r := range p.Egress {
			all = append(all, fmt.Sprintf("%s>%s %v %v", p.Address, r.Protocol, r.Destinations, r.Ports))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// The network reads one list of rules once, whatever number of apps has it: at each start and end it reads all.
func TestAppsOfAGroupShareAList(t *testing.T) {
	r, err := newReach(lrp.Reach{Egress: map[string][]lrp.EgressRule{"running/s": {{Protocol: "all", Destinations: []string{"1.1.1.1"}}}},
		Policies: []lrp.NetworkPolicy{{Source: "app-c", Destination: "app-a", Protocol: "tcp", FirstPort: 1, LastPort: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	addresses, members := map[*instance]netip.Addr{}, map[string][]network.Range{}
	for n, app := range []string{"app-a", "app-b", "app-c"} {
		i := &instance{}
		i.spec.GUID, i.spec.EgressGroup, i.spec.PolicyGroup = app, "running/s", app
		addresses[i] = netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})
		members[app] = []network.Range{{From: addresses[i], To: addresses[i]}}
	}
	lists := map[*network.Rule]int{}
	for _, p := range r.policies(addresses, members) {
		lists[&p.Egress[0]]++
	}
	if len(lists) != 2 {
		t.Errorf("got %d lists; want one of the group, and that of the app that may reach another", len(lists))
	}
}

func TestReachChangesWhileContainersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(t), t.TempDir()
		d := boot(t, m, dir)
		rule := func(to string) []lrp.EgressRule {
			return []lrp.EgressRule{{Protocol: "all", Destinations: []string{to}}}
		}
		var addresses []string
		for _, guid := range []string{"a", "b"} {
			spec := web()
			spec.GUID, spec.Checks.Liveness = guid, nil
			spec.Egress, spec.EgressGroup, spec.PolicyGroup = rule("1.1.1.1"), "running/s", "app-"+guid
			d.Start(spec)
			synctest.Wait()
			addresses = append(addresses, m.networks[guid].String())
		}
		want := func(what, format string, args ...any) {
			t.Helper()
			if got, want := m.reaches(), fmt.Sprintf(format, args...); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
			}
		}
		a, b := addresses[0], addresses[1]
		want("at the start", "%s>all [{1.1.1.1 1.1.1.1}] []\n%s>all [{1.1.1.1 1.1.1.1}] []", a, b)
		reach := lrp.Reach{Egress: map[string][]lrp.EgressRule{"running/s": rule("2.2.2.2"), "bad": {{Protocol: "x"}}},
			Policies: []lrp.NetworkPolicy{{Source: "app-a", Destination: "app-b", Protocol: "tcp", FirstPort: 8080, LastPort: 8090}, {Source: "app-b", Destination: "none", Protocol: "tcp", FirstPort: 1, LastPort: 1}}}
		if err := d.SetReach(t.Context(), reach); err == nil || !strings.Contains(err.Error(), "bad: ") {
			t.Errorf("got %v; want the bad group named", err)
		}
		all := []any{a, a, b, b, b}
		want("later", "%s>all [{2.2.2.2 2.2.2.2}] []\n%s>tcp [{%s %s}] [{8080 8090}]\n%s>all [{2.2.2.2 2.2.2.2}] []", all...)
		d.kill()

		next := boot(t, m.successor(), dir, func(c *Cell) {
			reach.Egress = map[string][]lrp.EgressRule{"running/s": nil}
			if err := c.SetReach(t.Context(), reach); err != nil {
				t.Error(err)
			}
		})
		m = next.m
		want("adopted", "%s>tcp [{%s %s}] [{8080 8090}]", a, b, b)
		next.Stop("b")
		next.last(t)
		want("without b", "")
		next.Stop("a")
		next.last(t)
		next.kill()
	})
}
