package bbs

import (
	"strings"
	"testing"

	"cupola/server/bbs/bbspb"
	"cupola/test/e2e"
)

// egressHolds has tasks reach what their egress rules allow, and nothing else.
func (b *bbsClient) egressHolds() {
	o := e2e.NewOutside(b.T.(*testing.T))
	ip := o.Private.String()
	archive := probeTar(b.T.(*testing.T))
	to := []string{"tcp:" + ip + ":80", "udp:" + ip + ":9000", "udp:" + ip + ":9001", "icmp:" + ip}
	icmp := func(kind, code int32) *bbspb.SecurityGroupRule {
		return &bbspb.SecurityGroupRule{Protocol: "icmp", Destinations: []string{ip}, IcmpInfo: &bbspb.ICMPInfo{Type: kind, Code: code}}
	}
	elsewhere := o.Public.String() + "-" + o.Public.String()
	cases := map[string]struct {
		rule *bbspb.SecurityGroupRule
		want string // of tcp 80, udp 9000, udp 9001, icmp
	}{
		"none":       {nil, "no no no no"},
		"tcp":        {&bbspb.SecurityGroupRule{Protocol: "tcp", Destinations: []string{ip + "/31"}, Ports: []uint32{79, 80}, Log: true}, "yes no no no"},
		"udp":        {&bbspb.SecurityGroupRule{Protocol: "udp", Destinations: []string{ip}, Ports: []uint32{9001}}, "no no yes no"},
		"udp-range":  {&bbspb.SecurityGroupRule{Protocol: "udp", Destinations: []string{elsewhere, ip + "-" + ip}, PortRange: &bbspb.PortRange{Start: 8999, End: 9000}, Log: true}, "no yes no no"},
		"ping":       {icmp(8, 0), "no no no yes"},
		"any-icmp":   {icmp(-1, -1), "no no no yes"},
		"other-icmp": {icmp(13, 0), "no no no no"},
		"all":        {&bbspb.SecurityGroupRule{Protocol: "all", Destinations: []string{ip}, Log: true}, "yes yes yes yes"},
		"elsewhere":  {&bbspb.SecurityGroupRule{Protocol: "all", Destinations: []string{elsewhere}}, "no no no no"},
	}
	for guid, c := range cases {
		task := taskCase{action: probeRun(append([]string{"reach"}, to...)...), result: c.want, with: func(d *bbspb.TaskDefinition) {
			if c.rule != nil {
				d.EgressRules = []*bbspb.SecurityGroupRule{c.rule}
			}
		}}
		b.must("/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: "to-" + guid, Domain: "egress", Definition: task.definition("to-"+guid, archive)})
	}
	ended := b.tasksEnded("egress", len(cases))
	for guid, c := range cases {
		if got := ended["to-"+guid]; got.Failed || got.Result != c.want {
			b.T.Errorf("%s: got %q %q of %s; want %q\n%s", guid, got.Result, got.FailureReason, strings.Join(to, " "), c.want, b.logOf("to-"+guid))
		}
	}
}
