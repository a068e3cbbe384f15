package cell

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"cupola/runtime/lrp"
	"cupola/runtime/network"
)

// policies serialises the setting of all policies. Those who ask while it is
// being done share the next one.
type policies struct {
	setting sync.Mutex

	mu    sync.Mutex
	asked uint64
	set   uint64 // of asked
}

// applyPolicies lets every live container reach what its rules allow. It
// returns when a state that includes the caller's change is set.
func (c *Cell) applyPolicies(ctx context.Context) error {
	p := &c.policies
	p.mu.Lock()
	p.asked++
	mine := p.asked
	p.mu.Unlock()
	p.setting.Lock()
	defer p.setting.Unlock()
	p.mu.Lock()
	covered, done := p.asked, p.set >= mine
	p.mu.Unlock()
	if done {
		return nil
	}
	if err := c.cfg.Network.Set(ctx, c.currentPolicies()); err != nil {
		return fmt.Errorf("set egress policies: %w", err)
	}
	p.mu.Lock()
	p.set = covered
	p.mu.Unlock()
	return nil
}

// SetReach lets containers reach what r says from now on: those that run, and
// those to come. Open connections stay open. A group whose rules cannot
// be read is left out and reported. Before Run has adopted SetReach only notes r,
// for Run: call it before Run, or after.
func (c *Cell) SetReach(ctx context.Context, r lrp.Reach) error {
	reach, err := newReach(r)
	c.mu.Lock()
	c.reach = reach
	c.mu.Unlock()
	select {
	case <-c.adopted:
		return errors.Join(err, c.applyPolicies(ctx))
	default:
		return err
	}
}

// reach is an lrp.Reach in the network's terms.
type reach struct {
	egress map[string][]network.Rule      // by EgressGroup
	routes map[string][]lrp.NetworkPolicy // by source
}

func newReach(r lrp.Reach) (out reach, faults error) {
	out = reach{egress: map[string][]network.Rule{}, routes: map[string][]lrp.NetworkPolicy{}}
	for group, rules := range r.Egress {
		list, err := EgressRules(rules)
		if err != nil {
			faults = errors.Join(faults, fmt.Errorf("%s: %w", group, err))
			continue
		}
		out.egress[group] = list
	}
	for _, p := range r.Policies {
		out.routes[p.Source] = append(out.routes[p.Source], p)
	}
	return out, faults
}

// currentPolicies are the rules of all containers. Those of one app are the
// same, whatever order its containers are found in.
func (c *Cell) currentPolicies() []network.Policy {
	addresses, members := map[*instance]netip.Addr{}, map[string][]network.Range{}
	for _, i := range c.all() {
		address, err := netip.ParseAddr(i.record().Address)
		if err != nil {
			continue // it has none
		}
		addresses[i] = address
		if group := i.spec.PolicyGroup; group != "" {
			members[group] = append(members[group], network.Range{From: address, To: address})
		}
	}
	for group, list := range members {
		slices.SortFunc(list, func(a, b network.Range) int { return a.From.Compare(b.From) })
		members[group] = slices.Compact(list) // those of a pod have one address
	}
	c.mu.Lock()
	reach := c.reach
	c.mu.Unlock()
	return reach.policies(addresses, members)
}

// policies are one for each address. The containers of a pod share theirs, and
// reach what any of them may.
func (r reach) policies(addresses map[*instance]netip.Addr, members map[string][]network.Range) []network.Policy {
	sorted := slices.SortedFunc(maps.Keys(addresses), func(a, b *instance) int { return strings.Compare(a.guid(), b.guid()) })
	egress := map[netip.Addr][]network.Rule{}
	// Instances of an app share one list, as do apps of a group that reach no containers: the network reads each list once.
	type app struct{ egress, policy string }
	shared := map[app][]network.Rule{}
	for _, i := range sorted {
		key := app{i.spec.EgressGroup, i.spec.PolicyGroup}
		list, known := shared[key]
		if !known {
			list = r.rules(i)
			if inside := r.inside(i.spec.PolicyGroup, members); len(inside) > 0 {
				list = slices.Concat(list, inside)
			}
			if _, ok := r.egress[key.egress]; ok && key.egress != "" { // else the rules are the container's own
				shared[key] = list
			}
		}
		if others := egress[addresses[i]]; others != nil {
			list = slices.Concat(others, list)
		}
		egress[addresses[i]] = list
	}
	all := make([]network.Policy, 0, len(egress))
	for address, rules := range egress {
		all = append(all, network.Policy{Address: address, Egress: rules})
	}
	return all
}

// rules are what a container may reach outside.
func (r reach) rules(i *instance) []network.Rule {
	if rules, ok := r.egress[i.spec.EgressGroup]; ok && i.spec.EgressGroup != "" {
		return rules
	}
	return i.egress
}

// inside are what the containers of a group may reach of others.
func (r reach) inside(group string, members map[string][]network.Range) (rules []network.Rule) {
	for _, p := range r.routes[group] {
		if to := members[p.Destination]; len(to) > 0 && group != "" {
			rules = append(rules, network.Rule{Protocol: p.Protocol, Destinations: to, Ports: []network.PortRange{{From: p.FirstPort, To: p.LastPort}}})
		}
	}
	return rules
}
