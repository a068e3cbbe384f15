package podcell

import (
	"cmp"
	"context"
	"sync"
	"time"

	"cupola/runtime/cell"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/kube"
)

// usages are what pods use, as their nodes last said.
type usages struct {
	mu    sync.Mutex
	nodes map[string]*nodeUsage
}

type nodeUsage struct {
	mu   sync.Mutex // held while the node is asked
	at   time.Time
	pods map[string]kube.Usage
}

// freshFor is how long a measurement counts: a kubelet measures every 10 s.
const freshFor = 10 * time.Second

// askTime bounds a question to a node.
const askTime = 3 * time.Second

// of is what a pod uses; false where its node does not say.
func (u *usages) of(c Cluster, node, pod string) (kube.Usage, bool) {
	u.mu.Lock()
	n := u.nodes[node]
	if n == nil {
		if u.nodes == nil {
			u.nodes = map[string]*nodeUsage{}
		}
		n = &nodeUsage{}
		u.nodes[node] = n
	}
	u.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.at) >= freshFor {
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		if text, err := c.Summary(ctx, node); err == nil {
			n.pods = kube.UsagesOf(text)
		}
		n.at = time.Now()
	}
	is, ok := n.pods[pod]
	return is, ok
}

// Stats is what a container uses; false if it does not run here, with why if it waits for something. Where the nodes do not
// say, it has limits alone.
func (c *Cell) Stats(guid string) (lrp.Stats, bool) {
	i := c.instance(guid)
	if i == nil || i.isOver() {
		return lrp.Stats{}, false
	}
	i.mu.Lock()
	pod, started, record, hold := i.pod, i.started, i.record, i.hold
	i.mu.Unlock()
	if started.IsZero() {
		return lrp.Stats{Waits: cmp.Or(kube.StateOf(pod, record).Waits, hold)}, false
	}
	s := lrp.Stats{MemoryQuota: uint64(i.spec.MemoryMB) << 20, DiskQuota: uint64(i.spec.DiskMB) << 20, LogRate: i.limiter.Rate(), Uptime: time.Since(started), FilesDigest: record.FilesDigest, FilesSince: started}
	if u, ok := c.usage.of(c.cfg.Cluster, kube.NodeOf(pod), guid); ok {
		s.CPU, s.CPUPercent, s.MemoryBytes, s.DiskBytes = u.CPU, u.CPUPercent, u.MemoryBytes, u.DiskBytes
	}
	if cores := c.entitledCores(i.spec.MemoryMB); cores > 0 {
		s.Entitlement = s.CPUPercent / 100 / cores
	}
	return s, true
}

// entitledCores is what the CPU share of a container is worth, which follows its memory: its part
// of the nodes' processors; 0 where these are not known.
func (c *Cell) entitledCores(memoryMB int) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all kube.Room
	for _, r := range c.nodes {
		all.MemoryMB, all.CPUs = all.MemoryMB+r.MemoryMB, all.CPUs+r.CPUs
	}
	if all.MemoryMB == 0 || c.blind {
		return 0
	}
	return all.CPUs * float64(memoryMB) / float64(all.MemoryMB)
}

// Measure is the usage of all containers that have started, of which their nodes tell.
func (c *Cell) Measure() (all []cell.Measured) {
	current := c.current()
	c.askNodes(current)
	for _, i := range current {
		if s, ok := c.Stats(i.guid); ok && s.MemoryBytes > 0 {
			all = append(all, cell.Measured{Stats: s, Log: i.logTarget(""), GUID: i.guid, LogRateLimit: i.spec.LogRateLimitByte, EntitledCPU: c.entitledCores(i.spec.MemoryMB)})
		}
	}
	return all
}

// askNodes asks the nodes of instances what their pods use, many nodes at once: one that does not answer takes askTime.
func (c *Cell) askNodes(of []*instance) {
	nodes := map[string]bool{}
	for _, i := range of {
		i.mu.Lock()
		nodes[kube.NodeOf(i.pod)] = true
		i.mu.Unlock()
	}
	delete(nodes, "") // of pods that wait for one
	var asking sync.WaitGroup
	slots := make(chan struct{}, maxAtOnce)
	for node := range nodes {
		slots <- struct{}{}
		asking.Go(fault.Func("podcell", func() {
			defer func() { <-slots }()
			c.usage.of(c.cfg.Cluster, node, "")
		}))
	}
	asking.Wait()
}
