package podcell

import (
	"context"
	"sync"
	"time"

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

// Stats is what a container uses; false if it does not run here. Where the nodes do not say, it
// has limits alone.
func (c *Cell) Stats(guid string) (lrp.Stats, bool) {
	i := c.instance(guid)
	if i == nil || i.isOver() {
		return lrp.Stats{}, false
	}
	i.mu.Lock()
	pod, started, digest := i.pod, i.started, i.record.FilesDigest
	i.mu.Unlock()
	if started.IsZero() {
		return lrp.Stats{}, false
	}
	s := lrp.Stats{MemoryQuota: uint64(i.spec.MemoryMB) << 20, DiskQuota: uint64(i.spec.DiskMB) << 20, LogRate: i.limiter.Rate(), Uptime: time.Since(started), FilesDigest: digest, FilesSince: started}
	if u, ok := c.usage.of(c.cfg.Cluster, kube.NodeOf(pod), guid); ok {
		s.CPU, s.CPUPercent, s.MemoryBytes, s.DiskBytes = u.CPU, u.CPUPercent, u.MemoryBytes, u.DiskBytes
	}
	return s, true
}
