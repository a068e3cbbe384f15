package cell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"cupola/runtime/lrp"
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
