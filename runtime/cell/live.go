package cell

import (
	"context"
	"syscall"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/health"
	"cupola/runtime/lrp"
)

// Diego's times of a stop.
const (
	grace    = 10 * time.Second // from SIGTERM to SIGKILL
	exitWait = time.Second      // from SIGKILL to giving up on the process
)

// doubtTime is how long a sidecar that was killed waits for the end of the main
// process: when that ends the kernel kills the sidecars, and tells of them
// first.
const doubtTime = 250 * time.Millisecond

// watch is the time in which an instance's processes run.
type watch struct {
	*instance
	end    ending
	exits  chan exited
	checks chan health.Event

	stop    <-chan struct{}  // Stop was called
	timeout <-chan time.Time // the action may not run longer
	kill    <-chan time.Time // the grace time is over
	giveUp  <-chan time.Time // not even SIGKILL ended it
	doubt   <-chan time.Time // the sidecar's end was not the main process' doing
	doubted exited
}

// exited is the end of one process of a container.
type exited struct {
	sidecar int // -1: the main process
	exit    container.Exit
}

const mainProcess = -1

// live watches the processes of i until the main one has ended, then takes the
// container down. When ctx ends it only looks away.
func (i *instance) live(ctx context.Context) {
	out := i.output()
	out.Start()
	w := &watch{instance: i, exits: make(chan exited), checks: make(chan health.Event), stop: i.halt.Done()}
	if !w.run(ctx) {
		out.Close()
		return
	}
	out.Drain()
	i.finish(ctx, w.end)
}

// run reports whether the container has ended.
func (w *watch) run(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.await(ctx)
	rec := w.record()
	go w.cell.check(ctx, w.healthSpec(rec), func(e health.Event) {
		select {
		case w.checks <- e:
		case <-ctx.Done():
		}
	})
	if rec.Plan.Timeout > 0 {
		w.timeout = time.After(time.Until(rec.StartedAt.Add(rec.Plan.Timeout)))
	}
	if rec.Ending != nil { // an earlier daemon began to stop it
		w.end, w.stop = *rec.Ending, nil
		w.terminate("")
	}
	return w.supervise(ctx)
}

// supervise does what is to do until the main process has ended.
func (w *watch) supervise(ctx context.Context) bool {
	for {
		select {
		case x := <-w.exits:
			if w.ended(x) {
				return true
			}
		case e := <-w.checks:
			w.checked(e)
		case <-w.stop:
			w.stopped()
		case <-w.timeout:
			w.timeout = nil
			w.terminate("exceeded " + w.record().Plan.Timeout.String() + " timeout")
		case <-w.doubt:
			w.sidecarEnded(w.doubted)
		case <-w.kill:
			w.killAll()
		case <-w.giveUp:
			w.end.Reasons = append(w.end.Reasons, "process did not exit")
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// await sends the end of every process to exits.
func (w *watch) await(ctx context.Context) {
	wait := func(sidecar int, wait func(context.Context) (container.Exit, error)) {
		exit, err := wait(ctx)
		if err != nil && ctx.Err() == nil {
			w.cell.cfg.Log.ErrorContext(ctx, "exit status was lost", "instance_guid", w.guid(), "err", err)
		}
		select {
		case w.exits <- exited{sidecar, exit}:
		case <-ctx.Done():
		}
	}
	go wait(mainProcess, func(ctx context.Context) (container.Exit, error) {
		return w.cell.cfg.Containers.Wait(ctx, w.guid())
	})
	for n, p := range w.sidecars {
		go wait(n, p.Wait)
	}
}

// checked takes what the health check says.
func (w *watch) checked(e health.Event) {
	switch e.Type {
	case health.Healthy:
		w.healthy()
	case health.Ready, health.NotReady:
		w.setReady(e.Type == health.Ready)
	case health.Unhealthy, health.NeverHealthy:
		w.terminate(e.Reason)
	}
}

// healthy tells that the container runs, once in its life: not again when a
// restarted daemon finds it running.
func (w *watch) healthy() {
	if w.record().Phase != lrp.PhaseStarting {
		return
	}
	w.keep(func(r *record) { r.Phase = lrp.PhaseRunning })
	w.cell.cfg.Events(w.event(lrp.EventRunning))
}

func (w *watch) setReady(ready bool) {
	rec := w.record()
	if rec.Ready == ready || rec.Phase != lrp.PhaseRunning || w.spec.Kind == lrp.KindTask {
		return
	}
	w.keep(func(r *record) { r.Ready = ready })
	if ready {
		w.cell.cfg.Events(w.event(lrp.EventReady))
	} else {
		w.cell.cfg.Events(w.event(lrp.EventNotReady))
	}
}

// stopped begins the end that Stop asked for.
func (w *watch) stopped() {
	w.stop = nil
	w.end.Stopped = true
	w.say("Cell %s stopping instance %s", w.cellID(), w.guid())
	w.terminate("")
}

// terminate begins the end of the container, if it has not begun. The reason
// is "" when the cell does not blame the container.
func (w *watch) terminate(reason string) {
	if w.ending() {
		return
	}
	if reason != "" {
		w.end.Reasons = append(w.end.Reasons, reason)
	}
	w.kill = time.After(grace)
	end := w.end
	w.keep(func(r *record) { r.Phase, r.Ready, r.Ending = lrp.PhaseStopping, false, &end })
	w.signal(syscall.SIGTERM)
}

// killAll ends what ignored the grace time.
func (w *watch) killAll() {
	w.kill, w.giveUp = nil, time.After(exitWait)
	w.end.Killed = true
	w.signal(syscall.SIGKILL)
}

// signal signals all processes. One that has ended is no error worth telling:
// its exit is on its way.
func (w *watch) signal(sig syscall.Signal) {
	if err := w.cell.cfg.Containers.Signal(w.guid(), sig); err != nil {
		w.cell.cfg.Log.Debug("process was not signalled", "instance_guid", w.guid(), "err", err)
	}
	for _, p := range w.sidecars {
		if err := p.Signal(sig); err != nil {
			w.cell.cfg.Log.Debug("sidecar was not signalled", "instance_guid", w.guid(), "err", err)
		}
	}
}

// ended takes the end of a process and reports whether it was the main one's.
// A container does not outlive any of its sidecars.
func (w *watch) ended(x exited) bool {
	if x.sidecar == mainProcess {
		w.end.Exit = x.exit
		if !w.ending() {
			w.end.Reasons = append(w.end.Reasons, w.exitReason(x.exit)...)
		}
		return true
	}
	killed := x.exit.Signal == int(syscall.SIGKILL) || !x.exit.Known
	switch {
	case !killed || w.ending():
		w.sidecarEnded(x)
	case w.doubt == nil:
		w.doubt, w.doubted = time.After(doubtTime), x
	}
	return false
}

// ending tells that the cell has begun to end the container.
func (w *watch) ending() bool { return w.kill != nil || w.giveUp != nil }

// sidecarEnded ends the container because of the sidecar.
func (w *watch) sidecarEnded(x exited) {
	source := w.sidecarSource(x.sidecar)
	w.line(source, false, exitLine(x.exit, w.end.Killed))
	if reasons := exitedWith(source, x.exit); reasons != nil {
		w.terminate(reasons[0])
	} else {
		w.terminate(codependent)
	}
}
