package cell

import (
	"context"
	"net/netip"
	"time"

	"cupola/runtime/health"
	"cupola/runtime/lrp"
)

// checkFunc watches a container's health until ctx ends, or until it has reported
// that the container is unhealthy: health.Run.
type checkFunc func(context.Context, *health.Spec, func(health.Event))

// watchStep is the step of a program that watches the container.
const watchStep = "watch"

// watch watches the container from the time when its first process runs. It
// ends with a failure when the container is not healthy.
func (p *performer) watch(ctx context.Context) error {
	if done, err := p.wasDone(watchStep); done {
		return err
	}
	select {
	case <-p.up:
	case <-ctx.Done():
		return errCancelled
	}
	var bad failure
	for again := true; again && bad == nil; {
		bad, again = p.watchAwake(ctx)
	}
	if bad == nil {
		return errCancelled
	}
	return p.done(watchStep, bad)
}

// watchAwake watches the container until it is frozen, and reports whether that is why it
// ended; or until it is not healthy.
func (p *performer) watchAwake(ctx context.Context) (bad failure, frozen bool) {
	awake, done := p.frost.awake(ctx)
	if awake == nil {
		return nil, false
	}
	defer done()
	p.cell.check(awake, p.healthSpec(), func(e health.Event) {
		if e.Type == health.Unhealthy || e.Type == health.NeverHealthy {
			bad = failure{e.Reason}
			return
		}
		p.checked(e)
	})
	return bad, awake.Err() != nil && ctx.Err() == nil
}

// healthSpec says how to watch the container from its current phase on.
func (p *performer) healthSpec() *health.Spec {
	rec := p.record()
	spec := &health.Spec{
		Checks: p.full.Checks, Exec: p.exec, StartTimeout: p.spec.StartTimeout,
		Healthy: rec.Phase == lrp.PhaseRunning, Ready: rec.Ready, Active: rec.Role == lrp.Active,
		Hint: p.portHint, Starved: func() time.Duration { return p.cell.cfg.Containers.Starved(p.guid()) },
		Log: func(l health.Line) { p.line(l.Source, l.Err, l.Text) },
	}
	if !p.full.Monitor.IsZero() {
		spec.Monitor = p.monitor
	}
	spec.Address, _ = netip.ParseAddr(rec.Address) // written by ourselves
	if waited := time.Since(rec.StartedAt); p.adopted {
		spec.Waited = waited
	}
	return spec
}

// checked handles a result of the health check.
func (p *performer) checked(e health.Event) {
	switch e.Type {
	case health.Healthy:
		p.healthy()
	case health.Ready, health.NotReady:
		p.setReady(e.Type == health.Ready)
	case health.Active:
		p.setRole(lrp.Active, lrp.EventActive)
	case health.Passive:
		p.setRole(lrp.Passive, lrp.EventPassive)
	}
}

// healthy reports once that the container runs: not again after a restarted
// daemon adopts it.
func (p *performer) healthy() {
	if p.record().Phase != lrp.PhaseStarting {
		return
	}
	p.trySave(func(r *record) { r.Phase = lrp.PhaseRunning })
	if p.spec.Kind == lrp.KindInstance {
		p.trace.step("health check", "", p.record().StartedAt, false)
		p.trace.end("", nil)
	}
	p.cell.cfg.Events(p.event(lrp.EventRunning))
}

func (p *performer) setReady(ready bool) {
	rec := p.record()
	if rec.Ready == ready || rec.Phase != lrp.PhaseRunning || p.spec.Kind == lrp.KindTask {
		return
	}
	p.trySave(func(r *record) { r.Ready = ready })
	if ready {
		p.cell.cfg.Events(p.event(lrp.EventReady))
	} else {
		p.cell.cfg.Events(p.event(lrp.EventNotReady))
	}
}

func (p *performer) setRole(role lrp.Role, event lrp.EventType) {
	rec := p.record()
	if rec.Role == role || rec.Phase != lrp.PhaseRunning || p.spec.Kind == lrp.KindTask {
		return
	}
	p.trySave(func(r *record) { r.Role = role })
	p.cell.cfg.Events(p.event(event))
}
