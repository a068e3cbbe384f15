package router

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cupola/runtime/fault"
)

// doze is what the router knows of an app that may sleep: what is under way to it, and
// whether it sleeps. It outlives tables.
type doze struct {
	app    string
	wake   func(ctx context.Context, appGUID string) error
	n      atomic.Int64 // requests, connections and Holds under way
	last   atomic.Int64 // Unix nanoseconds: when one ended
	asleep atomic.Bool  // or being woken: what comes has to wait

	mu     sync.Mutex
	waking *waking // nil: nobody wakes it
}

// waking is one wake of an app, which all requests that come meanwhile wait for.
type waking struct {
	ended chan struct{}
	err   error // read after ended
}

func (d *doze) enter() { d.n.Add(1) }

// leave sets the time before it counts down: who sees no request under way sees when the
// last one ended.
func (d *doze) leave() {
	d.last.Store(time.Now().UnixNano())
	d.n.Add(-1)
}

// wait returns when the app is awake. The caller has entered. It wakes an app that sleeps;
// ctx ends the wait, and not the wake.
func (d *doze) wait(ctx context.Context) error {
	if !d.asleep.Load() {
		return nil
	}
	d.mu.Lock()
	if !d.asleep.Load() {
		d.mu.Unlock()
		return nil
	}
	w := d.waking
	if w == nil {
		w = &waking{ended: make(chan struct{})}
		d.waking = w
		fault.Go("router", func() { d.rouse(w) })
	}
	d.mu.Unlock()
	select {
	case <-w.ended:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rouse wakes the app. If that fails it sleeps on, unless wake says otherwise by Rouse.
func (d *doze) rouse(w *waking) {
	w.err = fault.Guard("router", func() error { return d.wake(context.Background(), d.app) })
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.err == nil {
		d.last.Store(time.Now().UnixNano())
		d.asleep.Store(false)
	}
	d.waking = nil
	close(w.ended)
}

// SetWake sets what wakes an app for a request; it returns when requests can be sent to an
// instance. It is called before requests come.
func (r *Router) SetWake(wake func(ctx context.Context, appGUID string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake = wake
}

// dozeOf is the doze of an app. It is made before the first request.
func (r *Router) dozeOf(appGUID string) *doze {
	r.dozing.Lock()
	defer r.dozing.Unlock()
	d := r.dozes[appGUID]
	if d == nil {
		d = &doze{app: appGUID, wake: func(ctx context.Context, app string) error {
			r.mu.Lock()
			wake := r.wake
			r.mu.Unlock()
			return wake(ctx, app)
		}}
		d.last.Store(time.Now().UnixNano())
		r.dozes[appGUID] = d
	}
	return d
}

// sweepDozes forgets apps that the table does not lead to.
func (r *Router) sweepDozes(routed map[string]*doze) {
	r.dozing.Lock()
	defer r.dozing.Unlock()
	for app, d := range r.dozes {
		if routed[app] == nil && d.n.Load() == 0 && !d.asleep.Load() {
			delete(r.dozes, app)
		}
	}
}

// IdleSince is when the last request, connection or Hold of an app ended; now, if one is
// under way.
func (r *Router) IdleSince(appGUID string) time.Time {
	d := r.dozeOf(appGUID)
	if d.n.Load() > 0 {
		return time.Now()
	}
	return time.Unix(0, d.last.Load())
}

// Asleep reports whether requests to an app wait until it is woken.
func (r *Router) Asleep(appGUID string) bool {
	r.dozing.Lock()
	defer r.dozing.Unlock()
	d := r.dozes[appGUID]
	return d != nil && d.asleep.Load()
}

// Doze lets requests to an app wait, and wakes it for them from now on, if none was under
// way since a time; false otherwise. Idle connections to its instances are closed: the
// instances may close them when they are awake again, at the time of a request.
func (r *Router) Doze(appGUID string, since time.Time) bool {
	d := r.dozeOf(appGUID)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waking != nil {
		return false
	}
	d.asleep.Store(true) // before the look: what enters later sees it
	if d.n.Load() > 0 || d.last.Load() > since.UnixNano() {
		d.asleep.Store(false)
		return false
	}
	for _, b := range r.index.Load().backendsOf(appGUID) {
		b.closeIdle()
	}
	return true
}

// Rouse ends Doze without a wake: the app is awake already.
func (r *Router) Rouse(appGUID string) {
	d := r.dozeOf(appGUID)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last.Store(time.Now().UnixNano())
	d.asleep.Store(false)
}

// Hold wakes an app and keeps it awake until release is called.
func (r *Router) Hold(ctx context.Context, appGUID string) (release func(), err error) {
	d := r.dozeOf(appGUID)
	d.enter()
	if err := d.wait(ctx); err != nil {
		d.leave()
		return nil, err
	}
	return sync.OnceFunc(d.leave), nil
}

// Serves reports whether a route leads to an instance of an app.
func (r *Router) Serves(appGUID string) bool { return len(r.index.Load().backendsOf(appGUID)) > 0 }

// backendsOf are the backends of an app.
func (x *index) backendsOf(appGUID string) []*backend { return x.apps[appGUID] }

// sleeps reports whether an app of the route sleeps, so that the route is known though it
// has no endpoints.
func (p *pool) sleeps() bool {
	return slices.ContainsFunc(p.dozes, func(d *doze) bool { return d.asleep.Load() })
}

// sleeps reports whether the request has to wait until an app wakes.
func (x *exchange) sleeps() bool { return x.pool != nil && x.pool.sleeps() }

// rouse counts the request for the apps of its route, and waits until they are awake;
// false after it was refused.
func (x *exchange) rouse(waits func() (context.Context, func())) bool {
	if x.pool == nil {
		return true // a route service that is no app of ours
	}
	x.dozes = x.pool.dozes
	for _, d := range x.dozes {
		d.enter()
	}
	if len(x.candidates) > 0 && !x.sleeps() {
		return true
	}
	ctx, done := waits()
	err := x.wait(ctx)
	done()
	if err != nil {
		x.refuseAsleep(err)
		return false
	}
	if x.candidates = x.reresolve(); len(x.candidates) == 0 {
		x.refuseRoute()
		return false
	}
	return true
}

// wait waits for all apps of the route.
func (x *exchange) wait(ctx context.Context) error {
	for _, d := range x.dozes {
		if err := d.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// refuseAsleep answers for an app that could not be woken.
func (x *exchange) refuseAsleep(err error) {
	routerError := fmt.Sprintf("wake_failure (%v)", err)
	if x.gone(err) {
		x.answer(statusClientGone, routerError, "499 Request Cancelled")
		return
	}
	x.refuse(http.StatusServiceUnavailable, routerError, fmt.Sprintf("The app of the requested route ('%s') sleeps and could not be woken.", x.request.Host))
}

// patient lets a request wait until its client goes.
func (x *exchange) patient() (context.Context, func()) { return x.Context, func() {} }
