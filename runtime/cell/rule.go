package cell

import (
	"fmt"
	"strings"

	"cupola/runtime/lrp"
	"cupola/runtime/network"
)

// EgressRules turns CF's rules into the network's. What they say of IPv6 is
// left out: containers have IPv4 addresses alone.
func EgressRules(rules []lrp.EgressRule) ([]network.Rule, error) {
	var all []network.Rule
	for _, r := range rules {
		rule, err := egressRule(r)
		if err != nil {
			return nil, fmt.Errorf("egress rule: %w", err)
		}
		if len(rule.Destinations) > 0 {
			all = append(all, rule)
		}
	}
	return all, nil
}

func egressRule(r lrp.EgressRule) (network.Rule, error) {
	rule := network.Rule{Protocol: r.Protocol, ICMPType: r.ICMPType, ICMPCode: r.ICMPCode, Log: r.Log}
	var err error
	switch r.Protocol {
	case "icmpv6":
		return rule, nil
	case "tcp", "udp":
		if rule.Ports, err = network.ParsePorts(r.Ports); err != nil {
			return rule, err
		}
	case "icmp", "all":
	default:
		return rule, fmt.Errorf("unknown protocol %q", r.Protocol)
	}
	// CF lets one string name several destinations, with commas between.
	for part := range strings.SplitSeq(strings.Join(r.Destinations, ","), ",") {
		if strings.Contains(part, ":") {
			continue
		}
		ranges, err := network.ParseDestination(part)
		if err != nil {
			return rule, err
		}
		rule.Destinations = append(rule.Destinations, ranges...)
	}
	return rule, nil
}
