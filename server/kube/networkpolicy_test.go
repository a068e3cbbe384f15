package kube

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"cupola/runtime/lrp"
	"cupola/runtime/network"
)

func blocks(t testing.TB, s string) []network.Range {
	t.Helper()
	all, err := network.ParseDestination(s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNetworkPolicies(t *testing.T) {
	r := Reach{InstanceOptions{Cell: "edge", Owner: "me"}}
	router := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.1")}
	rules := []network.Rule{
		{Protocol: "all", Destinations: blocks(t, "0.0.0.0-9.255.255.255")},
		{Protocol: "tcp", Destinations: blocks(t, "10.0.0.1,192.0.2.0/24"), Ports: []network.PortRange{{From: 443, To: 443}, {From: 8000, To: 8100}}, Log: true},
		{Protocol: "icmp", Destinations: blocks(t, "0.0.0.0/0"), ICMPType: -1, ICMPCode: -1},
		{Protocol: "udp"},
	}
	policies := []lrp.NetworkPolicy{
		{Source: "front", Destination: "back", Protocol: "tcp", FirstPort: 8080, LastPort: 8080}, {Source: "back", Destination: "db", Protocol: "udp", FirstPort: 1, LastPort: 65535},
		{Source: "other", Destination: "third", Protocol: "tcp", FirstPort: 1, LastPort: 2},
	}
	all := []Object{r.Isolation(router), r.Egress("running.space", rules), r.Between("back", policies)}
	var out bytes.Buffer
	if err := Write(&out, all); err != nil {
		t.Fatal(err)
	}
	golden(t, "networkpolicy.golden.yml", out.Bytes())

	slices.Reverse(router)
	if got := r.Isolation(router); got.Name() != all[0].Name() {
		t.Error("the order of the router's addresses gives another policy")
	}
	if got := r.Egress("running.space", rules[1:]); got.Name() == all[1].Name() {
		t.Error("other rules give a policy of the same name")
	}
	other := Reach{InstanceOptions{Cell: "edge", Owner: "other"}}
	if other.Isolation(router).Name() == all[0].Name() {
		t.Error("two daemons have a policy of the same name")
	}
	// What allows nothing is no policy: one without peers would allow all.
	if o := r.Egress("running.space", rules[2:]); o != nil {
		t.Errorf("rules that allow nothing are %v", o)
	}
	if o := r.Between("nobody", policies); o != nil {
		t.Errorf("without policies there is %v", o)
	}
}

func TestReachGroups(t *testing.T) {
	for _, c := range []struct{ group, policy, wantEgress, wantPolicy string }{
		{"running/5b1a4b5c-0000-4000-8000-000000000001", "f25e0bcd-2be3-4e8a-9d0c-4cd3a3a9a3a1", "running.5b1a4b5c-0000-4000-8000-000000000001", "f25e0bcd-2be3-4e8a-9d0c-4cd3a3a9a3a1"},
		{"x", "a b", "x", "sha256."},
		{strings.Repeat("x", 64), "", "sha256.", ""},
		{"", "", "rules.", ""},
	} {
		got := ReachGroupsOf(lrp.RunInfo{EgressGroup: c.group, PolicyGroup: c.policy})
		for value, want := range map[string]string{got.Egress: c.wantEgress, got.Policy: c.wantPolicy} {
			if !strings.HasPrefix(value, want) || want == "" && value != "" || len(value) > 63 || value != "" && !qualified().MatchString(value) {
				t.Errorf("%q, %q: got %+v", c.group, c.policy, got)
			}
		}
	}
	one, two := []lrp.EgressRule{{Protocol: "all", Destinations: []string{"10.0.0.1"}}}, []lrp.EgressRule{{Protocol: "all", Destinations: []string{"10.0.0.2"}}}
	if a, b := ReachGroupsOf(lrp.RunInfo{Egress: one}), ReachGroupsOf(lrp.RunInfo{Egress: two}); a == b {
		t.Errorf("pods with other rules are both in %v", a)
	}
}

// TestAgents lets an agent connect to the pods of its cell alone, and these let it in.
func TestAgents(t *testing.T) {
	o := InstanceOptions{Cell: "edge", Owner: "me", Image: &PackedImage{Reference: "192.0.2.1:5443/droplets/x", Username: "edge", Password: "secret"}}
	made, err := Agent(o)
	if err != nil || !IsAgent(made.Pod) || made.Pod.Name() != AgentName(o) || AgentImage(made.Pod) != o.Image.Reference {
		t.Fatalf("got %v, %v", made.Pod, err)
	}
	if len(made.Secrets) != 1 || made.Secrets[0].Name() != PullSecret(AgentName(o)) {
		t.Errorf("got the Secrets %v", made.Secrets)
	}
	other := o
	other.Cell = "core"
	if AgentName(other) == AgentName(o) {
		t.Error("agents of two cells have one name")
	}
	text, err := json.Marshal(Reach{Pods: o}.Agents())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"egress":[{"to":[{"podSelector":{"matchLabels":{"cupola.dev/cell":"edge","cupola.dev/owner":"me"}}}]}],"podSelector":{"matchLabels":{"cupola.dev/agent":"true","cupola.dev/cell":"edge","cupola.dev/owner":"me"}},"policyTypes":["Egress"]`,
		`"ingress":[{"from":[{"podSelector":{"matchLabels":{"cupola.dev/agent":"true","cupola.dev/cell":"edge","cupola.dev/owner":"me"}}}]}],"podSelector":{"matchExpressions":[{"key":"cupola.dev/agent","operator":"DoesNotExist"}]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("got %s; want %s in it", text, want)
		}
	}
}
