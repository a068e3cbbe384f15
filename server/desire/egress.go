package desire

import (
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// allICMP stands for every ICMP type and code, as in Cloud Foundry's rules.
const allICMP = -1

// egress are the rules of the security groups that hold for the app's space.
func (o Owner) egress(staging bool) []lrp.EgressRule { return egress(o.Groups, o.Space.GUID, staging) }

// egressGroup names the rules that all have who run, or are staged, in the
// app's space.
func (o Owner) egressGroup(staging bool) string { return egressGroup(o.Space.GUID, staging) }

func egressGroup(space string, staging bool) string {
	if staging {
		return "staging/" + space
	}
	return "running/" + space
}

// egress are the rules of the security groups that hold for a space, in the
// order in which the groups were made.
func egress(groups []*cf.SecurityGroup, space string, staging bool) []lrp.EgressRule {
	var rules []lrp.EgressRule
	for _, g := range groups {
		global, spaces := g.GlobalRunning, g.RunningSpaces
		if staging {
			global, spaces = g.GlobalStaging, g.StagingSpaces
		}
		if !global && !slices.Contains(spaces, space) {
			continue
		}
		for _, r := range g.Rules {
			rules = append(rules, egressRule(r))
		}
	}
	return rules
}

// Egress are the rules of the security groups that hold for all that runs.
func Egress(groups []*cf.SecurityGroup) []lrp.EgressRule { return egress(groups, "", false) }

// ReachIn is what the reach of running containers depends on.
type ReachIn struct {
	Groups   []*cf.SecurityGroup
	Spaces   []*cf.Space
	Policies []*cf.NetworkPolicy
}

// Reach is what the containers of all spaces may reach.
func Reach(in ReachIn) lrp.Reach {
	r := lrp.Reach{Egress: make(map[string][]lrp.EgressRule, 2*len(in.Spaces))}
	for _, s := range in.Spaces {
		for _, staging := range []bool{false, true} {
			r.Egress[egressGroup(s.GUID, staging)] = egress(in.Groups, s.GUID, staging)
		}
	}
	for _, p := range in.Policies {
		r.Policies = append(r.Policies, lrp.NetworkPolicy{Source: p.Source, Destination: p.Destination,
			Protocol: p.Protocol, FirstPort: uint16(p.FirstPort), LastPort: uint16(p.LastPort)})
	}
	return r
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
