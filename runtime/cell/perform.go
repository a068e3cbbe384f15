package cell

import (
	"context"
	"errors"
	"slices"
	"sync"

	"cupola/runtime/container"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
)

// performer goes through what a container does. What it has come to is kept in
// the record, step by step: another daemon's performer goes through the same
// program, takes what is done as done and what runs as running, and so goes on
// where this one was.
type performer struct {
	*build
	life context.Context // of the daemon; when it ends, all is left as it is
	init string          // the step whose process is the container's first; "" where it is an idle one
	up   chan struct{}   // closed when the container's first process runs
	down chan struct{}   // closed when it has ended
	once *onces

	adopted   bool     // an earlier daemon started the container
	tentative bool     // a failure is not the container's end
	captured  *capture // nil, or what a monitor's processes write: nothing of it is kept
}

type onces struct{ up, down sync.Once }

func newPerformer(life context.Context, b *build) *performer {
	p := &performer{build: b, life: life, init: b.firstStep(), up: make(chan struct{}), down: make(chan struct{}), once: &onces{}}
	if !b.record().StartedAt.IsZero() {
		p.adopted = true
		p.isUp()
	}
	return p
}

func (p *performer) isUp()   { p.once.up.Do(func() { close(p.up) }) }
func (p *performer) isDown() { p.once.down.Do(func() { close(p.down) }) }

// perform goes through the program, unless Stop is called before its end.
func (p *performer) perform() error {
	ctx, cancel := context.WithCancel(p.life)
	defer cancel()
	defer p.onHalt(cancel)()
	if p.wasStopped() { // an earlier daemon stopped it
		p.thawToEnd()
		cancel()
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	err := p.main(ctx)
	if p.init == "" && errors.Is(err, errCancelled) && isClosed(p.down) {
		return failure{errGone.Error()} // somebody else ended the idle process
	}
	return err
}

// prepare is what is before main.
func (p *performer) prepare(ctx context.Context) error {
	if p.init == "" {
		if err := p.startIdle(ctx); err != nil {
			return err
		}
	}
	return p.do(ctx, "setup", p.full.Setup, p.spec.Log.Source)
}

// onHalt notes that Stop was called, and calls cancel, once it is. The function that it returns waits until this is done,
// or keeps it from being begun.
func (p *performer) onHalt(cancel func()) (wait func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(p.halt, fault.Func("cell", func() {
		defer close(done)
		p.stopped()
		cancel()
	}))
	return func() {
		if !stop() {
			<-done
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// main is what follows the setup: the action, its sidecars and what watches
// them. The first that fails ends the others; where there are sidecars, the
// first that ends does. A good end of an action alone that is watched ends
// nothing: it may have left a process behind.
func (p *performer) main(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs []error
	worked := false
	together(p.parts(ctx, cancel, &worked), func(err error) {
		errs = append(errs, err)
		if err != nil || ctx.Err() != nil {
			p.endBegins()
			cancel()
		}
	})
	return p.mainEnd(errs, worked)
}

// parts are what main does at once. The action notes in worked that it ended well. It stays apart
// from main, as performed does from live.
//
//go:noinline
func (p *performer) parts(ctx context.Context, cancel func(), worked *bool) []func() error {
	all := []func() error{func() error {
		err := p.do(ctx, "action", p.full.Action, p.spec.Log.Source)
		if err == nil {
			p.isUp()
			*worked = true
		}
		if err == nil && (!p.watched() || len(p.full.Sidecars) > 0) {
			cancel()
		}
		return err
	}}
	for n, s := range p.full.Sidecars {
		all = append(all, func() error {
			err := p.do(ctx, stepName("sidecar", n), s.Action, p.spec.Log.Source)
			if err == nil {
				cancel()
			}
			return err
		})
	}
	return append(all, func() error { return p.watch(ctx) })
}

// mainEnd is the end of main, whose parts ended with errs.
func (p *performer) mainEnd(errs []error, worked bool) error {
	err := joined(errs)
	switch {
	case worked && errors.Is(err, errCancelled):
		return nil
	case len(p.full.Sidecars) == 0 && !p.watched() && slices.Contains(errs, errGrace):
		return errGrace // nothing is around the action
	}
	return err
}

// together runs all at once, and calls ended with what each returned, one after the other. The
// last one runs in this goroutine: each other one's stack is a part of what an instance costs.
func together(all []func() error, ended func(error)) {
	var mu sync.Mutex
	run := func(f func() error) {
		err := fault.Guard("cell", f)
		mu.Lock()
		defer mu.Unlock()
		ended(err)
	}
	last := len(all) - 1
	if last < 0 {
		return
	}
	var others sync.WaitGroup
	for _, f := range all[:last] {
		others.Go(fault.Func("cell", func() { run(f) }))
	}
	run(all[last])
	others.Wait()
}

// watched reports whether a check outlives the end of the action.
func (b *build) watched() bool {
	return b.full.Kind == lrp.KindInstance && (!b.full.Monitor.IsZero() || active(b.full.Checks.Liveness))
}

func active(checks []lrp.Check) bool {
	return slices.ContainsFunc(checks, func(c lrp.Check) bool { return c.Asks() })
}

// stopped notes that Stop was called.
func (p *performer) stopped() {
	if p.life.Err() != nil {
		return
	}
	p.logf("Cell %s stopping instance %s", p.cellID(), p.guid())
	p.keepStarted(func(r *record) { r.Phase, r.Ready, r.Stopped = lrp.PhaseStopping, false, true })
}

// endBegins notes that what still runs is being ended, and gets no more
// requests.
func (p *performer) endBegins() {
	if p.life.Err() != nil || p.tentative || p.captured != nil {
		return
	}
	p.keepStarted(func(r *record) {
		if !r.StartedAt.IsZero() {
			r.Phase, r.Ready = lrp.PhaseStopping, false
		}
	})
}

// keepStarted keeps a change on disk if there is a container that outlives the
// daemon.
func (p *performer) keepStarted(change func(*record)) {
	if p.record().StartedAt.IsZero() {
		p.update(change)
		return
	}
	p.trySave(change)
}

// live goes through the program of b, whose parts are there, then takes the
// container down. When life ends it only looks away.
func (b *build) live(life context.Context) { b.performed(life, newPerformer(life, b).perform()) }

// performed takes down a container whose program ended with err. It is apart from live, whose
// frame lies on the stack for as long as the container lives.
func (i *instance) performed(life context.Context, err error) {
	rec := i.record()
	switch {
	case life.Err() != nil && rec.StartedAt.IsZero():
		i.cell.discard(life, i.guid()) // as if it had never begun
	case life.Err() != nil:
	case rec.StartedAt.IsZero():
		if rec.Stopped && (err == nil || errors.Is(err, errCancelled)) {
			err = errStopped
		}
		i.abandon(life, err)
	default:
		i.finish(life, i.endOf(err))
	}
}

// endOf is the end of a program.
func (i *instance) endOf(err error) ending {
	i.mu.Lock()
	defer i.mu.Unlock()
	end := ending{Exit: container.Exit{Known: true}, Stopped: i.rec.Stopped, Failed: err != nil, Reasons: reasonsOf(err)}
	if errors.Is(err, errGrace) {
		end.Reasons = []string{errGrace.Error()}
	}
	if i.rec.Exit != nil {
		end.Exit = *i.rec.Exit
	}
	return end
}
