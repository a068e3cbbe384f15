package desire

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

func TestReach(t *testing.T) {
	to := func(name, destination string, running bool) *cf.SecurityGroup {
		g := &cf.SecurityGroup{Name: name, GlobalRunning: running, Rules: []cf.SecurityRule{{Protocol: "all", Destination: destination}}}
		if !running {
			g.StagingSpaces = []string{"s"}
		}
		return g
	}
	got := Reach(ReachIn{
		Groups:   []*cf.SecurityGroup{to("all", "1.1.1.1", true), to("s", "2.2.2.2", false)},
		Spaces:   []*cf.Space{{Resource: cf.Resource{GUID: "s"}}, {Resource: cf.Resource{GUID: "t"}}},
		Policies: []*cf.NetworkPolicy{{Source: "a", Destination: "b", Protocol: "tcp", FirstPort: 1, LastPort: 65535}},
	})
	rules := func(destination string) []lrp.EgressRule {
		return []lrp.EgressRule{{Protocol: "all", Destinations: []string{destination}, ICMPType: -1, ICMPCode: -1}}
	}
	want := lrp.Reach{
		Egress:   map[string][]lrp.EgressRule{"running/s": rules("1.1.1.1"), "staging/s": rules("2.2.2.2"), "running/t": rules("1.1.1.1"), "staging/t": nil},
		Policies: []lrp.NetworkPolicy{{Source: "a", Destination: "b", Protocol: "tcp", FirstPort: 1, LastPort: 65535}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
