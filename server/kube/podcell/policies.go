package podcell

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"cupola/runtime/cell"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
	"cupola/server/kube"
	"cupola/server/kube/apply"
)

// policies keeps the NetworkPolicies that the cell's pods need: those of a pod are made before it, and
// removed when no pod needs them any longer.
type policies struct {
	cell *Cell
	wake chan struct{}

	ready     chan struct{} // closed once it is known what there is, and what should be
	readyOnce sync.Once

	changing chan struct{} // full while policies are made and removed

	mu      sync.Mutex
	set     bool // a reach
	listed  bool
	blind   bool                           // the cluster does not let them be listed
	up      bool                           // the cluster answers
	egress  map[string][]network.Rule      // by EgressGroup
	between map[string][]lrp.NetworkPolicy // by the label of either side
	routers []netip.Addr
	there   map[string]bool // by name: whether it says what it was made with
	resting bool            // run will be woken for what instances left
}

// rest is how long policies are kept for the instances that take the place of others.
const rest = 5 * time.Second

// release notes that an instance needs its policies no longer.
func (p *policies) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting {
		return
	}
	p.resting = true
	time.AfterFunc(rest, func() {
		p.mu.Lock()
		p.resting = false
		p.mu.Unlock()
		p.changed()
	})
}

func newPolicies(c *Cell) *policies {
	return &policies{cell: c, wake: make(chan struct{}, 1), ready: make(chan struct{}), changing: make(chan struct{}, 1), there: map[string]bool{}}
}

// SetReach lets pods connect to what r says from now on. It returns at once.
func (c *Cell) SetReach(r lrp.Reach) {
	p := c.policies
	egress := map[string][]network.Rule{}
	for group, rules := range r.Egress {
		if list, err := cell.EgressRules(rules); err == nil { // else the cell of this machine reports it
			egress[group] = list
		}
	}
	between := map[string][]lrp.NetworkPolicy{}
	for _, n := range r.Policies {
		from, to := kube.PolicyLabel(n.Source), kube.PolicyLabel(n.Destination)
		between[from] = append(between[from], n)
		if to != from {
			between[to] = append(between[to], n)
		}
	}
	routers := c.cfg.Addresses()
	p.mu.Lock()
	p.set, p.egress, p.between, p.routers = true, egress, between, routers
	p.mu.Unlock()
	p.changed()
}

// addresses are those that connections from this machine come from.
func addresses() (all []netip.Addr) {
	list, _ := net.InterfaceAddrs() // none: only what the user's own policies allow comes in
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				all = append(all, ip.Unmap())
			}
		}
	}
	return all
}

// changed wakes run, to compare what there is with what should be.
func (p *policies) changed() {
	p.mu.Lock()
	ready := p.set && (p.listed || p.blind)
	p.mu.Unlock()
	if ready {
		p.readyOnce.Do(func() { close(p.ready) })
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run follows the policies, and keeps them as they should be, until ctx ends.
func (p *policies) run(ctx context.Context) {
	p.cell.running.Go(fault.Func("podcell", func() {
		_ = p.cell.cfg.Cluster.Follow(ctx, apply.Following{Kind: "NetworkPolicy", Selector: p.cell.pods.Selector(), Begin: func() {}, All: p.all, Changed: p.saw, Gone: p.gone, Reached: p.reached})
	}))
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		if err := p.update(ctx); err != nil && ctx.Err() == nil {
			p.cell.cfg.Log.Warn("network policies of the cluster are not as they should be", "cell", p.cell.pods.Cell, "err", err)
		}
		p.cell.forget()
	}
}

// none reports whether the cluster has no policies.
func (p *policies) none() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blind || p.listed && p.up && len(p.there) == 0
}

func (p *policies) all(list []kube.Object) {
	p.mu.Lock()
	first := !p.listed
	p.listed, p.there = true, map[string]bool{}
	for _, o := range list {
		p.there[o.Name()] = kube.Intact(o)
	}
	p.mu.Unlock()
	if first {
		p.cell.cfg.Log.Warn("security groups and network policies become NetworkPolicies, which hold only if the cluster's network plugin enforces them", "cell", p.cell.pods.Cell)
	}
	p.changed()
}

func (p *policies) saw(o kube.Object) {
	p.mu.Lock()
	p.there[o.Name()] = kube.Intact(o)
	p.mu.Unlock()
	if !kube.Intact(o) {
		p.changed()
	}
}

func (p *policies) gone(o kube.Object) {
	p.mu.Lock()
	delete(p.there, o.Name())
	p.mu.Unlock()
	p.changed()
}

// reached notes whether the cluster answers, and whether policies may be seen: else none are made.
func (p *policies) reached(ok bool, err error) {
	p.mu.Lock()
	was, wasUp := p.blind, p.up
	p.up, p.blind = ok, !ok && (p.blind || apply.Refused(err))
	is := p.blind
	p.mu.Unlock()
	if is && !was {
		p.cell.cfg.Log.Warn("security groups and network policies are not enforced: the NetworkPolicies of the cluster cannot be listed", "cell", p.cell.pods.Cell, "err", err)
	}
	if is != was || ok != wasUp {
		p.changed()
	}
}

// needs are the policies that a container's pod needs. The caller has mu.
func (p *policies) needs(c lrp.Container) (all []kube.Object) {
	groups, reach := kube.ReachGroupsOf(c.RunInfo), kube.Reach{Pods: p.cell.pods}
	rules := p.egress[c.EgressGroup]
	if c.EgressGroup == "" {
		rules, _ = cell.EgressRules(c.Egress) // what cannot be read is not allowed
	}
	var stagings kube.Object
	if kube.Stages(c) && p.cell.cfg.Pulls != nil {
		stagings = reach.Stagings(p.cell.cfg.Pulls.reachedAt(p.routers))
	}
	for _, o := range []kube.Object{stagings, reach.Isolation(p.routers), reach.Egress(groups.Egress, rules), reach.Between(groups.Policy, p.between[groups.Policy])} {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// missing are those of a container's policies that the cluster does not have.
func (p *policies) missing(c lrp.Container) (all []kube.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blind {
		return nil
	}
	for _, o := range p.needs(c) {
		if !p.there[o.Name()] {
			all = append(all, o)
		}
	}
	return all
}

// before makes the policies of an instance's pod, before it.
func (p *policies) before(ctx context.Context, i *instance) error {
	select {
	case <-p.ready:
	case <-i.halt.Done():
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	if len(p.missing(i.spec)) == 0 {
		return nil
	}
	select {
	case p.changing <- struct{}{}:
		defer func() { <-p.changing }()
	case <-i.halt.Done():
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, o := range p.missing(i.spec) {
		if err := i.retry(ctx, func(ctx context.Context) error { return p.make(ctx, o) }); err != nil {
			return err
		}
	}
	return nil
}

// agentNeeds are the policies of the agent.
func (p *policies) agentNeeds() []kube.Object { return kube.Reach{Pods: p.cell.pods}.Agents() }

// agents makes the policies of the agent, before its pod.
func (p *policies) agents(ctx context.Context) error {
	select {
	case p.changing <- struct{}{}:
		defer func() { <-p.changing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, o := range p.agentNeeds() {
		p.mu.Lock()
		skip := p.blind || p.there[o.Name()]
		p.mu.Unlock()
		if skip {
			continue
		}
		if err := p.make(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// make makes a policy, also in place of one that others have changed.
func (p *policies) make(ctx context.Context, o kube.Object) error {
	p.mu.Lock()
	_, changed := p.there[o.Name()]
	p.mu.Unlock()
	if changed {
		if err := p.remove(ctx, o.Name()); err != nil {
			return err
		}
	}
	if err := p.cell.cfg.Cluster.Create(ctx, o); err != nil {
		return err
	}
	p.mu.Lock()
	p.there[o.Name()] = true
	p.mu.Unlock()
	return nil
}

func (p *policies) remove(ctx context.Context, name string) error {
	err := p.cell.cfg.Cluster.Remove(ctx, "NetworkPolicy", name, 0)
	if err == nil {
		p.mu.Lock()
		delete(p.there, name)
		p.mu.Unlock()
	}
	return err
}

// update makes the policies that are missing, and then removes those that no container needs.
func (p *policies) update(ctx context.Context) error {
	select {
	case p.changing <- struct{}{}:
		defer func() { <-p.changing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	missing, unwanted := p.compare()
	attempt := func(f func(context.Context) error) error {
		within, cancel := context.WithTimeout(ctx, changeTime)
		defer cancel()
		return f(within)
	}
	for _, o := range missing {
		if err := attempt(func(ctx context.Context) error { return p.make(ctx, o) }); err != nil {
			return err
		}
	}
	for _, name := range unwanted {
		if err := attempt(func(ctx context.Context) error { return p.remove(ctx, name) }); err != nil {
			return err
		}
	}
	return nil
}

// compare finds what is missing, and what no container needs. The latter counts as gone from here on: who
// needs it makes it again.
func (p *policies) compare() (missing []kube.Object, unwanted []string) {
	type need struct {
		egress, group string
		stages        bool
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.set || !p.listed || p.blind || !p.up || !p.cell.knows() {
		return nil, nil
	}
	seen, wanted := map[need]bool{}, map[string]bool{}
	for _, i := range p.cell.current() {
		c := i.spec
		n := need{c.EgressGroup, c.PolicyGroup, kube.Stages(c)}
		if c.EgressGroup != "" && seen[n] {
			continue
		}
		seen[n] = true
		for _, o := range p.needs(c) {
			if !wanted[o.Name()] && !p.there[o.Name()] {
				missing = append(missing, o)
			}
			wanted[o.Name()] = true
		}
	}
	if p.cell.agent.wanted() || !p.cell.agent.none() {
		for _, o := range p.agentNeeds() {
			if !p.there[o.Name()] {
				missing = append(missing, o)
			}
			wanted[o.Name()] = true
		}
	}
	for name := range p.there {
		if !wanted[name] {
			unwanted = append(unwanted, name)
			delete(p.there, name)
		}
	}
	return missing, unwanted
}

// knows reports whether the pods were listed.
func (c *Cell) knows() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}
