package podcell

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cupola/runtime/logs"
	"cupola/runtime/lrp"
	"cupola/server/kube"
	"cupola/server/kube/apply"
)

// making is when an instance was made whose pod is being created.
const making = -1

// instance is a container of the cell. One goroutine lives its life; what others tell it is
// behind mu, and wakes it.
type instance struct {
	cell    *Cell
	guid    string
	spec    lrp.Container // as it was started: its log's tags may have changed
	several bool          // it has more than one process
	wake    chan struct{}
	halt    context.Context // done when Stop was called
	stop    context.CancelFunc
	limiter *logs.Limiter
	output  output
	staging *staging // nil where it stages nothing

	changing sync.Mutex // held while what the pod tells of the container changes

	mu      sync.Mutex
	record  kube.Record
	made    int         // lists of pods that had begun when the pod was created; making
	pod     kube.Object // kube.Abridged
	isGone  bool
	over    bool // reported
	phase   lrp.Phase
	address string
	ready   bool
	started time.Time
	failed  bool
	hold    string                       // why its node does not start it, by events
	tags    map[string]map[string]string // by source

	// Of the goroutine alone.
	removed bool      // the pod was asked to end
	healthy bool      // it was running
	reached bool      // it has a way for requests, or has waited for one long enough
	since   time.Time // when it was first ready
	waits   string    // what was logged last
	askAt   time.Time // when events are asked for; zero while its node has no reason to start it
}

func newInstance(c *Cell, r kube.Record) *instance {
	i := &instance{cell: c, guid: r.Container.GUID, spec: r.Container, several: len(r.Sources) > 1, record: r, wake: make(chan struct{}, 1), phase: lrp.PhaseCreating, limiter: logs.NewLimiter(r.Container.LogRateLimitByte)}
	i.staging = newStaging(i)
	i.halt, i.stop = context.WithCancel(context.Background())
	return i
}

// adopt takes the pod of an earlier daemon, whose state the rows have already.
func (i *instance) adopt(pod kube.Object) {
	s := kube.StateOf(pod, i.record)
	i.pod, i.address, i.started = kube.Abridged(pod), s.Address, s.StartedAt
	if s.Phase == lrp.PhaseStarting || s.Phase == lrp.PhaseRunning {
		i.phase, i.ready = s.Phase, s.Ready
	}
	i.healthy = s.Phase == lrp.PhaseRunning
	i.reached = i.ready // requests wait for a tunnel rather than fail: what the instance replaced is gone
	i.output.load(i)
	if i.staging != nil {
		i.staging.load()
	}
	i.wakeUp()
}

func (i *instance) wakeUp() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

func (i *instance) requestStop() {
	i.stop()
	i.wakeUp()
}

func (i *instance) stopped() bool { return i.halt.Err() != nil }

// saw takes the pod as it is now.
func (i *instance) saw(pod kube.Object) {
	i.mu.Lock()
	i.pod = kube.Abridged(pod)
	i.mu.Unlock()
	i.wakeUp()
}

// wentAway takes it that there is no pod any longer.
func (i *instance) wentAway() {
	i.mu.Lock()
	i.isGone = true
	i.mu.Unlock()
	i.wakeUp()
}

// missing takes it that a list of the pods does not have this one. It may be younger.
func (i *instance) missing(list int) {
	i.mu.Lock()
	gone := i.made != making && i.made < list
	i.mu.Unlock()
	if gone {
		i.wentAway()
	}
}

func (i *instance) isOver() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.over
}

func (i *instance) isForgotten() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.over && i.isGone
}

func (i *instance) status() lrp.ContainerStatus {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := i.record.Container
	phase, ready := i.phase, i.ready
	if i.stopped() && phase != lrp.PhaseExited {
		phase, ready = lrp.PhaseStopping, false
	}
	return lrp.ContainerStatus{GUID: i.guid, Kind: c.Kind, ProcessGUID: c.ProcessGUID, Index: c.Index, Phase: phase, Address: i.address, Ready: ready,
		MemoryMB: c.MemoryMB, DiskMB: c.DiskMB, CellID: i.cell.pods.Cell, RootFS: c.RootFS, FilesDigest: i.record.FilesDigest, LogTags: c.Log.Tags,
		Domain: c.Domain, MaxPids: c.MaxPids, RequiredTags: c.Constraint.Require, VolumeDrivers: c.VolumeDrivers, Failed: i.failed}
}

// change changes the pod's state of the container, and then the cell's.
func (i *instance) change(f func(context.Context, *kube.Record) error) error {
	i.changing.Lock()
	defer i.changing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), changeTime)
	defer cancel()
	i.mu.Lock()
	next := i.record
	i.mu.Unlock()
	if err := f(ctx, &next); err != nil {
		return err
	}
	patch, err := next.Annotation()
	if err != nil {
		return err
	}
	if err := i.cell.cfg.Cluster.Change(ctx, "Pod", i.guid, patch); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.record, i.tags = next, nil
	return nil
}

// refuse ends what never became a pod.
func (i *instance) refuse(err error) {
	i.errorf("Cell %s failed to create container for instance %s: %s", i.cell.pods.Cell, i.guid, err)
	i.finish(lrp.Exit{Code: -1, Failed: true, Reason: "failed to create container: " + err.Error()})
}

// serviceZone ends the names of services of the built-in broker.
const serviceZone = ".services.internal"

// tellNames logs that the services of the built-in broker that a container is bound to are not reached from pods.
func (i *instance) tellNames(spec lrp.Container) {
	inEnv := slices.ContainsFunc(spec.Env, func(v lrp.EnvVar) bool { return strings.Contains(v.Value, serviceZone) })
	if inEnv || slices.ContainsFunc(spec.AllFiles(), func(f lrp.File) bool { return bytes.Contains(f.Content, []byte(serviceZone)) }) {
		i.errorf("It is bound to a service of the built-in broker, which no pod reaches: *%s are on the machine of cupola. Bind one that the cluster reaches (cf create-user-provided-service), or move the app there (cupola cells move)", serviceZone)
	}
}

// pack makes an image of the container's root, and then its objects.
func (i *instance) pack(ctx context.Context, spec lrp.Container) (objects kube.RenderedInstance, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(i.halt, cancel)()
	image, err := i.cell.cfg.Pulls.image(ctx, i.cell.pods.Cell, spec.RunInfo, func(what string) { i.logf("Cell %s packing %s", i.cell.pods.Cell, what) })
	if err != nil {
		return objects, err
	}
	if objects, err = i.cell.render(spec, true, image); err != nil {
		return objects, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.record = objects.Record
	return objects, nil
}

// create makes the pod, and what it needs; false when the instance has ended.
func (i *instance) create(ctx context.Context, objects kube.RenderedInstance) bool {
	if len(objects.Dropped) > 0 {
		i.errorf("Kubernetes accepts no variables named %s: they are left out", strings.Join(objects.Dropped, ", "))
	}
	err := i.cell.policies.before(ctx, i)
	for _, o := range append(objects.Secrets, objects.Pod) {
		if err == nil {
			err = i.retry(ctx, func(ctx context.Context) error { return i.cell.cfg.Cluster.Create(ctx, o) })
		}
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return false
	case i.stopped():
		i.clear(ctx)
		i.finish(lrp.Exit{Stopped: true, Failed: i.isTask()})
		return false
	default:
		i.clear(ctx)
		i.refuse(err)
		return false
	}
	i.cell.mu.Lock()
	lists := i.cell.lists
	i.cell.mu.Unlock()
	i.mu.Lock()
	i.made = lists
	i.mu.Unlock()
	return true
}

func (i *instance) isTask() bool { return i.spec.Kind == lrp.KindTask }

var errStopped = errors.New("stopped")

// attemptTime bounds a request.
const attemptTime = 30 * time.Second

// retry asks until the cluster does it, refuses it, or ctx ends; or Stop is called.
func (i *instance) retry(ctx context.Context, f func(context.Context) error) error {
	return i.persist(ctx, i.halt, f)
}

func (i *instance) persist(ctx, halt context.Context, f func(context.Context) error) error {
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, attemptTime/2) {
		select {
		case i.cell.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		case <-halt.Done():
			return errStopped
		}
		err := i.attempt(ctx, f)
		if err == nil || apply.Refused(err) {
			return err
		}
		i.cell.cfg.Log.Debug("request to the cluster is tried again", "instance_guid", i.guid, "err", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-halt.Done():
			return errStopped
		case <-time.After(wait/2 + rand.N(wait)):
		}
	}
}

// attempt asks once, in a slot that the caller has taken.
func (i *instance) attempt(ctx context.Context, f func(context.Context) error) error {
	defer func() { <-i.cell.slots }()
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	return f(ctx)
}

// clear removes the pod and its Secrets, whether they are there or not.
func (i *instance) clear(ctx context.Context) {
	i.mu.Lock()
	gone, names := i.isGone, kube.SecretNames(i.record)
	i.mu.Unlock()
	remove := func(kind, name string) {
		err := i.persist(ctx, context.Background(), func(ctx context.Context) error { return i.cell.cfg.Cluster.Remove(ctx, kind, name, 0) })
		if err != nil && ctx.Err() == nil {
			i.cell.cfg.Log.Error("object of an instance that ended was not removed", "kind", kind, "name", name, "err", err)
		}
	}
	if !gone {
		remove("Pod", i.guid)
	}
	for _, name := range names {
		remove("Secret", name)
	}
}

// live goes on with what happens to the pod, until the instance is over.
func (i *instance) live(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			i.output.close()
			return
		case <-i.wake:
		}
		if i.step(ctx) {
			return
		}
	}
}

// step acts on the pod as it is now, and reports whether the instance is over.
func (i *instance) step(ctx context.Context) bool {
	i.mu.Lock()
	pod, gone, record := i.pod, i.isGone, i.record
	i.mu.Unlock()
	switch {
	case gone && i.stopped():
		return i.end(ctx, lrp.Exit{Stopped: true, Failed: i.isTask()})
	case gone:
		return i.lost(ctx, takenAway)
	case i.stopped() && !i.removed:
		i.remove(ctx)
	}
	if pod == nil {
		return false
	}
	s := kube.StateOf(pod, record)
	i.output.follow(ctx, i, s)
	if i.stopped() {
		if s.Phase == lrp.PhaseExited || s.StartedAt.IsZero() || i.isLost(pod) {
			return i.end(ctx, lrp.Exit{Stopped: true, Failed: i.isTask()})
		}
		return false
	}
	if !kube.Deleted(pod).IsZero() {
		return i.leaves(ctx, s, pod)
	}
	switch {
	case s.Phase == lrp.PhaseExited && i.staging != nil:
		return i.staged(ctx, s.End)
	case s.Phase == lrp.PhaseExited:
		return i.crashed(ctx, s.End)
	case s.Stuck:
		i.errorf("Cell %s failed to create container for instance %s: %s", i.cell.pods.Cell, i.guid, s.Waits)
		return i.end(ctx, lrp.Exit{Code: -1, Failed: true, Reason: "failed to create container: " + s.Waits})
	}
	i.tellWaits(cmp.Or(s.Waits, i.holds(ctx, s, pod)))
	i.advance(s)
	return false
}

// remove asks the pod to end.
func (i *instance) remove(ctx context.Context) {
	i.logf("Cell %s stopping instance %s", i.cell.pods.Cell, i.guid)
	i.mu.Lock()
	grace := kube.GraceOf(i.pod)
	i.mu.Unlock()
	err := i.persist(ctx, context.Background(), func(ctx context.Context) error {
		return i.cell.cfg.Cluster.Remove(ctx, "Pod", i.guid, grace)
	})
	i.removed = err == nil
	if err != nil && ctx.Err() == nil {
		i.cell.cfg.Log.Error("pod was not asked to end", "instance_guid", i.guid, "err", err)
	}
}

// tellWaits logs why the pod does not start yet.
func (i *instance) tellWaits(why string) {
	if why != "" && why != i.waits {
		i.errorf("Instance %s waits: %s", i.guid, why)
	}
	i.waits = why
}

// advance reports what is new.
func (i *instance) advance(s kube.InstanceState) {
	is := s.Ready && s.Phase == lrp.PhaseRunning && i.hasWay(s.Address)
	i.mu.Lock()
	was := i.ready
	i.phase, i.address, i.ready = s.Phase, s.Address, is
	if i.healthy && s.Phase == lrp.PhaseStarting {
		i.phase = lrp.PhaseRunning // once healthy it is running
	}
	if !s.StartedAt.IsZero() {
		i.started = s.StartedAt
	}
	i.mu.Unlock()
	i.cell.locate(i, s.Address)
	if s.Phase == lrp.PhaseRunning && !i.healthy {
		i.healthy = true
		i.logf("Cell %s successfully created container for instance %s", i.cell.pods.Cell, i.guid)
		i.send(lrp.EventRunning)
	}
	switch {
	case is && !was:
		i.send(lrp.EventReady)
	case was && !is:
		i.send(lrp.EventNotReady)
	}
}

// hasWay reports whether an instance that is ready may be routed to. The first time it
// waits until the router connects to pods, since the tunnel may have to be made first:
// what it replaces goes on until then.
func (i *instance) hasWay(ip string) bool {
	first := i.since.IsZero()
	if i.reached && !first {
		return true
	}
	if first {
		i.since = time.Now()
	}
	i.mu.Lock()
	at := kube.PortOf(i.pod)
	i.mu.Unlock()
	has := at == 0 || i.cell.hasWay()
	i.reached = i.reached || has || time.Since(i.since) > reachTime
	if !has {
		i.cell.findWay(net.JoinHostPort(ip, strconv.FormatInt(at, 10)))
	}
	return i.reached
}

func (i *instance) send(t lrp.EventType) { i.cell.cfg.Events(i.event(t)) }

func (i *instance) event(t lrp.EventType) lrp.Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := i.record.Container
	e := lrp.Event{Type: t, GUID: i.guid, Kind: c.Kind, At: time.Now(), Address: i.address}
	if c.Kind == lrp.KindInstance {
		e.Key = lrp.Key{ProcessGUID: c.ProcessGUID, Index: c.Index}
	}
	return e
}

// leaves deals with a pod that the cluster takes away: another instance takes its place. One
// whose node does not answer never ends.
func (i *instance) leaves(ctx context.Context, s kube.InstanceState, pod kube.Object) bool {
	i.mu.Lock()
	was := i.ready
	i.phase, i.ready = lrp.PhaseStopping, false
	i.mu.Unlock()
	if was {
		i.send(lrp.EventNotReady)
	}
	if s.Phase == lrp.PhaseExited || i.isLost(pod) {
		return i.lost(ctx, takenAway)
	}
	return false
}

// lostTime is how long a pod may be there once it should have ended, on a node that answers.
const lostTime = time.Minute

// isLost reports whether a pod should have ended long ago, or its node does not answer. If not it is looked at again then.
func (i *instance) isLost(pod kube.Object) bool {
	at := kube.Deleted(pod)
	if at.IsZero() {
		return false
	}
	left := -time.Since(at)
	if !i.cell.isSilent(kube.NodeOf(pod)) {
		left += lostTime
	}
	if left > 0 {
		time.AfterFunc(left, i.wakeUp)
	}
	return left <= 0
}

// takenAway is why an instance is lost, mostly.
const takenAway = "it was taken away by the cluster"

// lost ends an instance whose pod the cluster took away. It is not a crash: that its container is
// missing is seen, and it is started elsewhere.
func (i *instance) lost(ctx context.Context, why string) bool {
	i.errorf("Pod %s is lost: %s", i.guid, why)
	i.output.drain()
	i.clear(ctx)
	if ctx.Err() != nil {
		return true
	}
	i.done()
	return true
}

// crashed ends an instance whose process has ended.
func (i *instance) crashed(ctx context.Context, end kube.InstanceEnd) bool {
	var probe kube.FailedProbe
	if end.Message == "" && !end.OOM {
		within, cancel := context.WithTimeout(ctx, changeTime)
		if events, err := i.cell.cfg.Cluster.Events(within, i.guid); err == nil {
			probe = kube.FailedProbeOf(events)
		}
		cancel()
	}
	i.output.drain()
	if probe.Text != "" {
		i.line("HEALTH", true, probe.Text)
	}
	i.line(end.Source, end.Code != 0, end.Line())
	exit := lrp.Exit{Code: end.Code, Reason: end.Reason(probe, i.several)}
	exit.Failed = !i.isTask() || exit.Reason != ""
	return i.end(ctx, exit)
}

// end reports the end of an instance, then removes its remains. After a kill in between
// the next daemon finds the pod, and reports it again.
func (i *instance) end(ctx context.Context, exit lrp.Exit) bool {
	i.output.drain()
	if exit.Stopped {
		// Delete the pod first: what is reported as ended has ended.
		i.clear(ctx)
		if ctx.Err() == nil {
			i.finish(exit)
		}
		return true
	}
	i.report(exit)
	i.clear(ctx)
	if ctx.Err() == nil {
		i.done()
	}
	return true
}

// finish reports the end of what has no pod.
func (i *instance) finish(exit lrp.Exit) {
	i.mu.Lock()
	i.isGone = i.isGone || i.pod == nil
	i.mu.Unlock()
	i.report(exit)
	i.done()
}

func (i *instance) report(exit lrp.Exit) {
	i.mu.Lock()
	i.phase, i.ready, i.failed = lrp.PhaseExited, false, exit.Failed
	i.mu.Unlock()
	e := i.event(lrp.EventExited)
	e.Address, e.Exit = "", exit
	if i.staging != nil && !exit.Stopped {
		var outputs []lrp.Blob
		if e.Result, outputs = i.staging.ended(); !exit.Failed {
			e.Outputs = outputs
		}
	}
	i.cell.cfg.Events(e)
}

// done forgets the instance. While its pod is there it is remembered, so that it is not adopted.
func (i *instance) done() {
	i.logf("Cell %s successfully destroyed container for instance %s", i.cell.pods.Cell, i.guid)
	i.output.remove()
	if i.staging != nil {
		i.staging.remove()
	}
	i.mu.Lock()
	i.over = true
	address := i.address
	i.mu.Unlock()
	i.cell.places.CompareAndDelete(address, i.guid)
	i.cell.agent.wakeUp()
	i.cell.forgetGone(i.guid)
	i.cell.policies.release()
	i.cell.freed()
}

// logf writes a line about the container to its log.
func (i *instance) logf(format string, args ...any) {
	i.line(i.cellSource(), false, fmt.Sprintf(format, args...))
}

func (i *instance) errorf(format string, args ...any) {
	i.line(i.cellSource(), true, fmt.Sprintf(format, args...))
}

// cellSource is the source of the cell's own lines, as on other cells.
func (i *instance) cellSource() string {
	if !i.isTask() {
		return "CELL"
	}
	return i.spec.Log.Source
}
