package cell

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

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

func (c *Cell) currentPolicies() []network.Policy {
	var all []network.Policy
	for _, i := range c.all() {
		address, err := netip.ParseAddr(i.record().Address)
		if err != nil {
			continue // it has none
		}
		all = append(all, network.Policy{Address: address, Egress: i.egress})
	}
	return all
}
