package podcell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"cupola/rootfs/reference"
	"cupola/rootfs/stack"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/cells"
	"cupola/server/kube"
)

// agent keeps the pod in which the far end of the tunnel runs: while containers are there that are reached by it.
type agent struct {
	cell *Cell
	mode string // one of cells' Tunnel…
	wake chan struct{}

	image kube.PackedImage // that the pod has; of run alone

	mu     sync.Mutex
	by     bool          // the tunnel is what connects, in mode auto
	asked  time.Time     // when a connection last needed the tunnel
	idle   time.Time     // since when nothing needs it; zero while something does
	pod    kube.Object   // nil of none
	left   bool          // it may have a Secret in the cluster
	change chan struct{} // closed when pod changes
	waits  string        // why the pod does not run; it was logged
	failed error         // of the last step
	isOpen bool          // the tunnel
	ended  error         // why it is not open; nil before it was needed
}

const (
	agentRest  = 15 * time.Second // how long an agent stays that nothing needs
	agentTries = time.Minute      // how long an agent is wanted that did not help yet
	agentRetry = 2 * time.Second  // after an attempt that failed
)

func newAgent(c *Cell) *agent {
	a := &agent{cell: c, mode: cmp.Or(c.cfg.Tunnel, cells.TunnelNever), wake: make(chan struct{}, 1), change: make(chan struct{})}
	if c.cfg.Pulls == nil {
		a.mode = cells.TunnelNever // there is no image of an agent
	}
	return a
}

func (a *agent) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// wanted reports whether containers are there that are, or may be, reached by the tunnel.
func (a *agent) wanted() bool {
	a.mu.Lock()
	may := a.mode == cells.TunnelAlways || a.mode == cells.TunnelAuto && (a.by || time.Since(a.asked) < agentTries)
	a.mu.Unlock()
	a.cell.mu.Lock()
	defer a.cell.mu.Unlock()
	return may && len(a.cell.instances) > 0
}

// isUsed reports whether pods are reached by the tunnel since they do not answer at their addresses.
func (a *agent) isUsed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.by
}

// need notes that a connection needs the tunnel.
func (a *agent) need() {
	a.mu.Lock()
	a.asked = time.Now()
	a.mu.Unlock()
	a.wakeUp()
}

// all takes a list of the pods. An agent of an earlier daemon says that this cell needs one.
func (a *agent) all(pods []kube.Object) {
	n := slices.IndexFunc(pods, kube.IsAgent)
	if n < 0 {
		a.saw(nil)
		return
	}
	a.mu.Lock()
	a.by = a.by || a.mode == cells.TunnelAuto
	a.mu.Unlock()
	a.saw(pods[n])
}

// saw takes the agent's pod as it is now; nil of none.
func (a *agent) saw(pod kube.Object) {
	a.mu.Lock()
	a.pod, a.left = pod, a.left || pod != nil
	close(a.change)
	a.change = make(chan struct{})
	a.mu.Unlock()
	a.wakeUp()
}

// none reports whether nothing of an agent is in the cluster.
func (a *agent) none() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pod == nil && !a.left
}

// mayHave notes that an earlier daemon has left a Secret of the agent.
func (a *agent) mayHave() {
	a.mu.Lock()
	a.left = true
	a.mu.Unlock()
	a.wakeUp()
}

// run keeps the agent until ctx ends.
func (a *agent) run(ctx context.Context) {
	for {
		var again <-chan time.Time
		wait, err := a.step(ctx)
		a.mu.Lock()
		a.failed = err
		a.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			a.cell.cfg.Log.Warn("agent of the cluster's tunnel is not as it should be", "cell", a.cell.pods.Cell, "err", err)
			wait = agentRetry
		}
		if wait > 0 {
			again = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		case <-again:
		}
	}
}

// step makes or removes the agent. It must be called again after wait, unless that is zero.
func (a *agent) step(ctx context.Context) (wait time.Duration, err error) {
	if !a.cell.knows() {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	wanted := a.wanted()
	a.mu.Lock()
	pod, left := a.pod, a.left
	if wanted || pod == nil && !left {
		a.idle = time.Time{}
	} else if a.idle.IsZero() {
		a.idle = time.Now()
	}
	idle := a.idle
	a.mu.Unlock()
	switch {
	case wanted:
		if err := a.make(ctx, pod); err != nil {
			return 0, err
		}
		return a.connect(ctx, pod), nil
	case idle.IsZero():
		return 0, nil
	case time.Since(idle) < agentRest && pod != nil:
		return agentRest, nil
	}
	return agentRetry, a.remove(ctx)
}

// make makes a pod that runs this daemon's program, and its policies.
func (a *agent) make(ctx context.Context, pod kube.Object) error {
	o := a.cell.options()
	if pod == nil || a.image.Reference == "" {
		image, err := a.cell.cfg.Pulls.image(ctx, o.Cell, kube.AgentRunInfo(string(reference.SchemePreloaded)+":"+stack.Minifs), func(string) {})
		if err != nil {
			return err
		}
		a.image = image
	}
	o.Image = &a.image
	if pod != nil && !kube.AgentEnded(pod) && kube.AgentImage(pod) == a.image.Reference {
		a.tellWaits(kube.AgentWaits(pod))
		return a.cell.policies.agents(ctx)
	}
	if pod != nil { // when it is gone, it is made again
		return a.cell.cfg.Cluster.Remove(ctx, "Pod", pod.Name(), 0)
	}
	made, err := kube.Agent(o)
	if err != nil {
		return err
	}
	if err := a.cell.policies.agents(ctx); err != nil {
		return err
	}
	a.mayHave()
	for _, object := range append(made.Secrets, made.Pod) {
		if err := a.cell.cfg.Cluster.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s %s: %w", object.Kind(), object.Name(), err)
		}
	}
	return nil
}

// connect opens the tunnel as soon as the agent runs, before a request waits for it.
func (a *agent) connect(ctx context.Context, pod kube.Object) (wait time.Duration) {
	if pod == nil || kube.AgentEnded(pod) || !kube.AgentRuns(pod) {
		return agentTries // or when the pod has changed
	}
	if a.cell.tunnel.Connect(ctx) != nil {
		return agentRetry
	}
	return agentTries
}

// up notes that the tunnel is open.
func (a *agent) up() {
	a.mu.Lock()
	a.isOpen, a.ended = true, nil
	a.mu.Unlock()
	a.cell.cfg.Log.Info("tunnel into the cluster is open", "cell", a.cell.pods.Cell)
}

// down notes that the tunnel has ended, or could not be opened.
func (a *agent) down(err error) {
	wanted := a.wanted()
	a.mu.Lock()
	known := a.ended != nil
	a.isOpen, a.ended = false, nil
	if wanted {
		a.ended = err
	}
	a.mu.Unlock()
	a.wakeUp()
	if wanted && !known {
		a.cell.cfg.Log.Warn("there is no tunnel into the cluster: its pods are not reached", "cell", a.cell.pods.Cell, "err", err)
	}
}

// state is that of the tunnel, with why requests do not reach the pods that need it; "" while they do, or wait for the first attempt to open it.
func (a *agent) state() (state lrp.TunnelState, problem string) {
	wanted := a.wanted()
	a.mu.Lock()
	defer a.mu.Unlock()
	var why string
	switch {
	case !wanted:
		return lrp.TunnelUnused, ""
	case a.isOpen:
		return lrp.TunnelOpen, ""
	case a.failed != nil:
		why = "its agent cannot be made: " + a.failed.Error()
	case a.waits != "":
		why = "its agent waits: " + a.waits
	case a.ended != nil:
		why = a.ended.Error()
	default:
		return lrp.TunnelClosed, ""
	}
	return lrp.TunnelClosed, "there is no tunnel into the cluster, so requests do not reach its pods: " + why
}

// tellWaits logs why the agent does not run.
func (a *agent) tellWaits(why string) {
	a.mu.Lock()
	was := a.waits
	a.waits = why
	a.mu.Unlock()
	if why != "" && why != was {
		a.cell.cfg.Log.Warn("agent of the cluster's tunnel waits", "cell", a.cell.pods.Cell, "why", why)
	}
}

// remove removes the agent, and what it needs.
func (a *agent) remove(ctx context.Context) error {
	name := kube.AgentName(a.cell.pods)
	for _, o := range []struct{ kind, name string }{{"Pod", name}, {"Secret", kube.PullSecret(name)}} {
		if err := a.cell.cfg.Cluster.Remove(ctx, o.kind, o.name, 0); err != nil {
			return err
		}
	}
	a.mu.Lock()
	a.left, a.by, a.waits, a.ended = false, false, "", nil
	a.mu.Unlock()
	a.cell.tunnel.Close()
	a.cell.policies.changed()
	return nil
}

// errNoAgent is of a tunnel that waited for its agent in vain.
var errNoAgent = errors.New("its agent does not run")

// open opens the stream of the tunnel, once the agent runs.
func (a *agent) open(ctx context.Context) (io.ReadWriteCloser, error) {
	for {
		a.mu.Lock()
		pod, change := a.pod, a.change
		a.mu.Unlock()
		if pod != nil && !kube.AgentEnded(pod) && kube.AgentRuns(pod) {
			return a.cell.cfg.Cluster.Exec(ctx, pod.Name(), kube.ProcessContainer, contract.Fetch, contract.CommandTunnel)
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, errNoAgent
		}
	}
}
