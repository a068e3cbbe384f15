package health

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/runtime/fault"
)

// Run watches until ctx ends or the container turns out unhealthy, which is
// its last event. Events come in order, from one goroutine at a time; Run
// waits for event to return.
func Run(ctx context.Context, spec *Spec, event func(Event)) {
	dialer := &net.Dialer{}
	run(ctx, spec, dialer.DialContext, event)
}

func run(ctx context.Context, spec *Spec, dial dialFunc, event func(Event)) {
	w := newWatch(spec, dial, event)
	ctx, w.cancel = context.WithCancel(ctx)
	defer w.cancel()
	if err := fault.Guard("health", func() error { w.start(ctx); return nil }); err != nil {
		w.emit(ctx, Unhealthy, err.Error())
	}
}

// watch is one Run.
type watch struct {
	spec                *Spec
	live, ready, active []probe
	monitored           bool // live is the monitor
	cancel              func()

	mu    sync.Mutex // held while event runs
	event func(Event)
}

func newWatch(spec *Spec, dial dialFunc, event func(Event)) *watch {
	p := prober{address: spec.Address, dial: dial, exec: spec.Exec, starved: spec.Starved}
	w := &watch{spec: spec, live: p.probes(spec.Checks.Liveness), ready: p.probes(spec.Checks.Readiness), active: steady(p.probes(spec.Checks.Active)), event: event}
	if w.monitored = len(w.live) == 0 && spec.Monitor != nil; w.monitored {
		w.live = []probe{{ask: spec.Monitor, interval: defaultInterval, pause: monitorPause}}
	}
	return w
}

func (w *watch) start(ctx context.Context) {
	if !w.spec.Healthy && !w.startup(ctx) {
		return
	}
	w.emit(ctx, Healthy, "")
	if len(w.active) > 0 && !w.spec.Active {
		w.emit(ctx, Passive, "") // before it can be ready
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(fault.Func("health", func() { w.readiness(ctx) }))
	watching.Go(fault.Func("health", func() { w.activity(ctx) }))
	w.liveness(ctx)
	cancel()
	watching.Wait()
}

// startup probes until the first success. It reports whether there was one.
func (w *watch) startup(ctx context.Context) bool {
	if len(w.live) == 0 {
		return true
	}
	w.log("CELL", false, "Starting health monitoring of container")
	began := time.Now().Add(-w.spec.Waited)
	timeout := w.spec.StartTimeout
	if timeout > 0 {
		timeout = max(timeout-w.spec.Waited, defaultInvocationTimeout) // it is asked once at least
	}
	failed := untilAll(ctx, w.live, timeout, w.spec.Starved)
	switch {
	case ctx.Err() != nil:
		return false
	case len(failed) > 0:
		w.neverHealthy(ctx, time.Since(began), failed)
		return false
	}
	w.log("CELL", false, "Container became healthy")
	return true
}

// neverHealthy reports all checks that did not pass, joined as the executor's
// steps.NewParallel joins them.
func (w *watch) neverHealthy(ctx context.Context, took time.Duration, failed []attempt) {
	took = took.Round(time.Millisecond)
	texts := make([]string, len(failed))
	for n, a := range failed {
		texts[n] = fmt.Sprintf("Timed out after %s (%d attempts) waiting for startup check to succeed: %v", w.spec.StartTimeout, a.count, a.err)
		if w.monitored {
			texts[n] = a.err.Error()
		}
	}
	text := strings.Join(texts, "; ") + w.hint()
	w.log(w.source(), true, text)
	w.log("CELL", true, fmt.Sprintf("Failed after %s: startup health check never passed.", took))
	w.emit(ctx, NeverHealthy, fmt.Sprintf("Instance never healthy after %s: %s", took, text))
}

// hint is what there is to add to the failure of the first port that liveness checks ask.
func (w *watch) hint() string {
	if w.spec.Hint == nil {
		return ""
	}
	for _, c := range w.spec.Checks.Liveness {
		if c.Port == 0 {
			continue
		}
		if text := w.spec.Hint(c.Port); text != "" {
			return "; " + text
		}
		return ""
	}
	return ""
}

// attempt is how often a probe was asked, and its last error.
type attempt struct {
	count int
	err   error
}

// untilAll asks until every probe has had a good answer, or timeout (0: none)
// has passed, on the clock of a container that waits for processors as starved says. It returns those that had none, in order.
func untilAll(ctx context.Context, probes []probe, timeout time.Duration, starved func() time.Duration) (failed []attempt) {
	answers := make([]attempt, len(probes))
	var asking sync.WaitGroup
	for n, p := range probes {
		asking.Go(fault.Func("health", func() {
			answers[n].err = fault.Guard("health", func() (err error) {
				if timeout == 0 {
					answers[n].count, err = p.untilSuccess(ctx)
					return err
				}
				answers[n].count, err = p.untilTimeout(ctx, &clock{starved: starved, length: timeout})
				return err
			})
		}))
	}
	asking.Wait()
	return slices.DeleteFunc(answers, func(a attempt) bool { return a.err == nil })
}

// untilTimeout asks until the first success, or until c's deadline has passed, or ctx ended.
func (p probe) untilTimeout(ctx context.Context, c *clock) (attempts int, err error) {
	c.begin(c.length)
	for left := c.length; left > 0; left = c.more() {
		within, cancel := context.WithTimeout(ctx, left)
		n, failure := p.untilSuccess(within)
		cancel()
		attempts, err = attempts+n, failure
		if failure == nil || ctx.Err() != nil {
			break
		}
	}
	return attempts, err
}

// untilSuccess asks at growing distances until ctx ends.
func (p probe) untilSuccess(ctx context.Context) (attempts int, err error) {
	good := 0
	for pause := max(firstPause, p.least); ; pause = min(2*pause, p.pause) {
		attempts++
		next := pause
		askErr := p.ask(ctx)
		switch {
		case askErr == nil:
			if good++; good >= p.successes {
				return attempts, nil
			}
			next = p.interval
		case err == nil || ctx.Err() == nil:
			good, err = 0, askErr // one cut short by the end says less than the one before
		}
		if !sleep(ctx, next) {
			return attempts, cmp.Or(err, ctx.Err())
		}
	}
}

// liveness probes a healthy container until a probe fails or ctx ends.
func (w *watch) liveness(ctx context.Context) {
	if len(w.live) == 0 {
		<-ctx.Done()
		return
	}
	prefix := "Liveness check unsuccessful: "
	if w.monitored {
		prefix = ""
	}
	text := joined(prefix, untilAny(ctx, w.live))
	if text == "" {
		return
	}
	text += w.hint()
	w.log(w.source(), true, text)
	w.log("CELL", true, "Container became unhealthy")
	w.emit(ctx, Unhealthy, "Instance became unhealthy: "+text)
}

// readiness reports Ready and NotReady in turn until ctx ends.
func (w *watch) readiness(ctx context.Context) {
	if len(w.ready) == 0 {
		w.emit(ctx, Ready, "")
		return
	}
	w.log("CELL", false, "Starting readiness health monitoring of container")
	inTurn(ctx, w.ready, w.spec.Ready, func() {
		w.log("CELL", false, "Container passed the readiness health check. Container marked ready and added to route pool.")
		w.emit(ctx, Ready, "")
	}, func(errs []error) {
		text := joined("Readiness check unsuccessful: ", errs)
		w.log(w.source(), true, text)
		w.log("CELL", false, "Container failed the readiness health check. Container marked not ready and removed from route pool.")
		w.emit(ctx, NotReady, text)
	})
}

// activity reports Active and Passive in turn until ctx ends.
func (w *watch) activity(ctx context.Context) {
	inTurn(ctx, w.active, w.spec.Active, func() {
		w.log("CELL", false, "Container is active")
		w.emit(ctx, Active, "")
	}, func(errs []error) {
		text := joined("", errs)
		w.log("CELL", false, "Container is passive: "+text)
		w.emit(ctx, Passive, text)
	})
}

// inTurn calls good when all probes have come to pass, and bad when one of them
// has come to fail, until ctx ends; passing says that they did already.
func inTurn(ctx context.Context, probes []probe, passing bool, good func(), bad func([]error)) {
	if len(probes) == 0 {
		return
	}
	delay := time.Duration(0)
	for _, p := range probes {
		delay = max(delay, p.delay)
	}
	if !passing && !sleep(ctx, delay) {
		return
	}
	for ctx.Err() == nil {
		if !passing {
			if failed := untilAll(ctx, probes, 0, nil); len(failed) > 0 {
				return
			}
			good()
		}
		errs := untilAny(ctx, probes)
		if len(errs) == 0 {
			return
		}
		bad(errs)
		passing = false
	}
}

// joined is the text of failed checks, in the form that the executor's steps
// join errors; "" of none.
func joined(prefix string, errs []error) string {
	texts := make([]string, len(errs))
	for n, err := range errs {
		texts[n] = prefix + err.Error()
	}
	return strings.Join(texts, "; ")
}

// untilAny asks every probe's interval until one fails. Then it asks the others
// once more, so that all that fail are named. It returns the failures, the first
// one first; none when ctx ended.
func untilAny(ctx context.Context, probes []probe) []error {
	failed := untilFailure(ctx, probes)
	if len(failed.errs) == 0 {
		return nil
	}
	for n, err := range askOnce(ctx, probes, failed.which) {
		if err != nil && !failed.which[n] {
			failed.errs = append(failed.errs, err)
		}
	}
	return failed.errs
}

// failures are those of probes, in the order of time.
type failures struct {
	mu    sync.Mutex
	errs  []error
	which map[int]bool // the probes' numbers
}

func (f *failures) add(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs, f.which[n] = append(f.errs, err), true
}

// untilFailure asks every probe's interval until one has failed or ctx ended. The first one is asked
// in this goroutine: each other one's stack is a part of what an instance costs.
func untilFailure(ctx context.Context, probes []probe) *failures {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := &failures{which: map[int]bool{}}
	ask := func(n int) {
		if err := fault.Guard("health", func() error { return probes[n].untilFailure(within) }); err != nil {
			failed.add(n, err)
			cancel()
		}
	}
	var others sync.WaitGroup
	for n := 1; n < len(probes); n++ {
		others.Go(fault.Func("health", func() { ask(n) }))
	}
	ask(0)
	others.Wait()
	return failed
}

// askOnce asks the probes that have not failed yet at the same time. A probe that
// may fail several times in a row is not asked: one failure says nothing.
func askOnce(ctx context.Context, probes []probe, failed map[int]bool) []error {
	errs := make([]error, len(probes))
	var asking sync.WaitGroup
	for n, p := range probes {
		if failed[n] || p.failures > 1 {
			continue
		}
		asking.Go(fault.Func("health", func() { errs[n] = fault.Guard("health", func() error { return p.ask(ctx) }) }))
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errs
}

func (p probe) untilFailure(ctx context.Context) error {
	for bad := 0; sleep(ctx, p.interval); {
		err := p.ask(ctx)
		if err == nil {
			bad = 0
			continue
		}
		if bad++; bad >= p.failures && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// emit hands on an event. One that says that the container is unhealthy is the last.
func (w *watch) emit(ctx context.Context, t EventType, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	w.event(Event{Type: t, At: time.Now(), Reason: reason})
	if t == Unhealthy || t == NeverHealthy {
		w.cancel()
	}
}

// source is where what checks found is logged.
func (w *watch) source() string {
	if w.monitored {
		return "CELL"
	}
	return cmp.Or(w.spec.Checks.LogSource, "HEALTH")
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
