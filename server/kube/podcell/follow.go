package podcell

import (
	"context"
	"maps"
	"slices"

	"cupola/runtime/fault"
	"cupola/server/kube"
)

// begin notes that a list of the pods begins. Before the first one nothing is started: the
// Secrets that are there then are of pods that are there, or of none.
func (c *Cell) begin() {
	c.mu.Lock()
	c.lists++
	known, ctx := c.known, c.ctx
	c.mu.Unlock()
	if known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	if names, err := c.cfg.Cluster.Names(ctx, "Secret", c.pods.Selector()); err == nil {
		c.mu.Lock()
		c.left = names
		c.mu.Unlock()
	}
}

// all takes a whole list of pods.
func (c *Cell) all(pods []kube.Object) {
	there, stay := map[string]bool{}, map[string]bool{}
	c.agent.all(pods)
	for _, o := range pods {
		there[o.Name()], stay[o.Name()] = true, kube.Deleted(o).IsZero()
		c.pod(o)
	}
	c.mu.Lock()
	list := c.lists
	for guid, i := range c.instances {
		if !there[guid] {
			i.missing(list)
		}
	}
	left, first := c.left, !c.known
	c.known, c.left = true, nil
	c.mu.Unlock()
	if first {
		c.removeKept(there)
	}
	c.forgetGone(c.guids()...)
	c.removeLeft(left, stay)
	c.policies.changed()
	c.agent.wakeUp()
}

// removeLeft removes the Secrets of pods that do not stay.
func (c *Cell) removeLeft(left []string, stay map[string]bool) {
	for _, name := range left {
		if kube.SecretGUID(name) == kube.AgentName(c.pods) {
			c.agent.mayHave()
			continue
		}
		if stay[kube.SecretGUID(name)] {
			continue
		}
		c.running.Go(fault.Func("podcell", func() {
			ctx, cancel := context.WithTimeout(c.ctx, changeTime)
			defer cancel()
			if err := c.cfg.Cluster.Remove(ctx, "Secret", name, 0); err != nil {
				c.cfg.Log.Warn("secret of a pod that is gone was not removed", "cell", c.pods.Cell, "secret", name, "err", err)
			}
		}))
	}
}

// pod takes a pod that is new, or other than before.
func (c *Cell) pod(o kube.Object) {
	if kube.IsAgent(o) {
		c.agent.saw(o)
		return
	}
	if i := c.instance(o.Name()); i != nil {
		i.saw(o)
		return
	}
	if !kube.Deleted(o).IsZero() {
		return // an earlier daemon has ended it, or others have
	}
	r, err := kube.RecordOf(o)
	if err != nil {
		c.cfg.Log.Error("pod was not adopted", "cell", c.pods.Cell, "err", err)
		return
	}
	i := newInstance(c, r)
	i.adopt(o)
	c.launch(i, i.live)
}

// gone takes a pod that is there no longer.
func (c *Cell) gone(o kube.Object) {
	if kube.IsAgent(o) {
		c.agent.saw(nil)
		c.policies.changed()
		return
	}
	if i := c.instance(o.Name()); i != nil {
		i.wentAway()
		c.forgetGone(i.guid)
	}
}

// guids are those of all instances, also of those that are over.
func (c *Cell) guids() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.instances))
}

// forgetGone forgets those of the instances that are over and of which no pod is left.
func (c *Cell) forgetGone(guids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, guid := range guids {
		if i := c.instances[guid]; i != nil && i.isForgotten() {
			delete(c.instances, guid)
			c.agent.wakeUp()
		}
	}
}
