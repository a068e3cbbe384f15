package podcell

import (
	"context"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/kube"
)

// slowTime is how long a node may take to start a pod until its events are asked for, and then between such questions.
const slowTime = 15 * time.Second

// askPause is between two questions of a cell for events: where many pods are slow at once, the causes are the same.
const askPause = time.Second

// mayAsk reports whether the cell may ask for the events of a pod now.
func (c *Cell) mayAsk(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.asked) < askPause {
		return false
	}
	c.asked = now
	return true
}

// holds is why the node of a pod does not start it, which only events tell: its image is being pulled, or what the pod needs fails.
func (i *instance) holds(ctx context.Context, s kube.InstanceState, pod kube.Object) string {
	now, hold := time.Now(), i.hold
	switch {
	case s.Phase != lrp.PhaseCreating || kube.NodeOf(pod) == "" || s.Waits != "":
		i.askAt, hold = time.Time{}, ""
	case !i.askAt.IsZero() && now.Before(i.askAt):
	default:
		if !i.askAt.IsZero() && i.cell.mayAsk(now) {
			within, cancel := context.WithTimeout(ctx, changeTime)
			if events, err := i.cell.cfg.Cluster.Events(within, i.guid); err == nil {
				hold = kube.HoldOf(events)
			}
			cancel()
		}
		i.askAt = now.Add(slowTime)
		time.AfterFunc(slowTime, i.wakeUp)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hold = hold
	return hold
}
