package desire

import (
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// allICMP stands for every ICMP type and code, as in Cloud Foundry's rules.
const allICMP = -1

// egress are the rules of the security groups that hold for the app's space,
// in the order in which the groups were made.
func (o Owner) egress(staging bool) []lrp.EgressRule {
	var rules []lrp.EgressRule
	for _, g := range o.Groups {
		global, spaces := g.GlobalRunning, g.RunningSpaces
		if staging {
			global, spaces = g.GlobalStaging, g.StagingSpaces
		}
		if !global && !slices.Contains(spaces, o.Space.GUID) {
			continue
		}
		for _, r := range g.Rules {
			rules = append(rules, egressRule(r))
		}
	}
	return rules
}

func egressRule(r cf.SecurityRule) lrp.EgressRule {
	e := lrp.EgressRule{Protocol: r.Protocol, Ports: strings.ReplaceAll(r.Ports, " ", ""), Log: r.Log, ICMPType: allICMP, ICMPCode: allICMP}
	for d := range strings.SplitSeq(r.Destination, ",") {
		e.Destinations = append(e.Destinations, strings.TrimSpace(d))
	}
	if r.Type != nil {
		e.ICMPType = *r.Type
	}
	if r.Code != nil {
		e.ICMPCode = *r.Code
	}
	return e
}
