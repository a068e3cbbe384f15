package health

import (
	"context"
	"fmt"
	"net"
	"time"

	"cupola/runtime/lrp"
)

// Run watches until ctx ends or the container turns out unhealthy, which is
// its last event. Events come in order, from one goroutine at a time; Run
// waits for event to return.
func Run(ctx context.Context, spec Spec, event func(Event)) {
	dialer := &net.Dialer{}
	run(ctx, spec, dialer.DialContext, event)
}

func run(ctx context.Context, spec Spec, dial dialFunc, event func(Event)) {
	spec.Check, spec.Readiness = withDefaults(spec.Check), withDefaults(spec.Readiness)
	w := &watch{spec: spec, prober: prober{address: spec.Address, dial: dial}, events: make(chan Event)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(w.events)
		w.start(ctx)
	}()
	for e := range w.events {
		if ctx.Err() == nil {
			event(e)
		}
		if e.Type == Unhealthy || e.Type == NeverHealthy {
			cancel()
		}
	}
}

// watch is one Run.
type watch struct {
	spec   Spec
	prober prober
	events chan Event
}

func (w *watch) start(ctx context.Context) {
	if !w.spec.Healthy && !w.startup(ctx) {
		return
	}
	w.emit(ctx, Healthy, "")
	ctx, cancel := context.WithCancel(ctx)
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		w.readiness(ctx)
	}()
	w.liveness(ctx)
	cancel()
	<-ready
}

// startup probes until the first success. It reports whether there was one.
func (w *watch) startup(ctx context.Context) bool {
	if passive(w.spec.Check) {
		return true
	}
	w.log("CELL", false, "Starting health monitoring of container")
	began := time.Now()
	attempts, err := w.untilSuccess(ctx, w.spec.Check, w.spec.StartTimeout)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		w.neverHealthy(ctx, time.Since(began), attempts, err)
		return false
	}
	w.log("CELL", false, "Container became healthy")
	return true
}

func (w *watch) neverHealthy(ctx context.Context, took time.Duration, attempts int, err error) {
	took = took.Round(time.Millisecond)
	text := fmt.Sprintf("Timed out after %s (%d attempts) waiting for startup check to succeed: %v", w.spec.StartTimeout, attempts, err)
	w.log("HEALTH", true, text)
	w.log("CELL", true, fmt.Sprintf("Failed after %s: startup health check never passed.", took))
	w.emit(ctx, NeverHealthy, fmt.Sprintf("Instance never healthy after %s: %s", took, text))
}

// untilSuccess probes at growing distances. It returns how often it did, and
// the last error if timeout (0: none) passed first.
func (w *watch) untilSuccess(ctx context.Context, c lrp.Check, timeout time.Duration) (attempts int, err error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		attempts++
		probeErr := w.prober.probe(ctx, c)
		if probeErr == nil {
			return attempts, nil
		}
		if err == nil || ctx.Err() == nil {
			err = probeErr // one cut short by the end says less than the one before
		}
		if !sleep(ctx, pause) {
			return attempts, err
		}
	}
}

// liveness probes a healthy container until a probe fails or ctx ends.
func (w *watch) liveness(ctx context.Context) {
	if passive(w.spec.Check) {
		<-ctx.Done()
		return
	}
	err := w.untilFailure(ctx, w.spec.Check)
	if err == nil {
		return
	}
	text := "Liveness check unsuccessful: " + err.Error()
	w.log("HEALTH", true, text)
	w.log("CELL", true, "Container became unhealthy")
	w.emit(ctx, Unhealthy, "Instance became unhealthy: "+text)
}

// readiness tells Ready and NotReady in turn until ctx ends.
func (w *watch) readiness(ctx context.Context) {
	if passive(w.spec.Readiness) {
		w.emit(ctx, Ready, "")
		return
	}
	w.log("CELL", false, "Starting readiness health monitoring of container")
	for ctx.Err() == nil {
		if _, err := w.untilSuccess(ctx, w.spec.Readiness, 0); err != nil {
			return
		}
		w.log("CELL", false, "Container passed the readiness health check. Container marked ready and added to route pool.")
		w.emit(ctx, Ready, "")
		err := w.untilFailure(ctx, w.spec.Readiness)
		if err == nil {
			return
		}
		text := "Readiness check unsuccessful: " + err.Error()
		w.log("HEALTH", true, text)
		w.log("CELL", false, "Container failed the readiness health check. Container marked not ready and removed from route pool.")
		w.emit(ctx, NotReady, text)
	}
}

// untilFailure probes every interval and returns the first failure, or nil
// when ctx ended.
func (w *watch) untilFailure(ctx context.Context, c lrp.Check) error {
	for sleep(ctx, c.Interval) {
		if err := w.prober.probe(ctx, c); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (w *watch) emit(ctx context.Context, t EventType, reason string) {
	select {
	case w.events <- Event{Type: t, At: time.Now(), Reason: reason}:
	case <-ctx.Done():
	}
}

func (w *watch) log(source string, isErr bool, text string) {
	if w.spec.Log != nil {
		w.spec.Log(Line{Source: source, Err: isErr, Text: text})
	}
}

// sleep waits for d and reports whether ctx still goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
