package director

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"cupola/rootfs/volume"
	"cupola/runtime/fault"
	"cupola/server/bosh"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/link"
	"cupola/server/bosh/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// Volumes keeps the disks of instances. Create of one that is there and Remove
// of one that is not change nothing.
type Volumes interface {
	Create(name string, spec volume.Spec) error
	// Grow enlarges an unused volume; it leaves a used one as it is.
	Grow(name string, bytes int64) error
	// Copy makes an unused volume with the content of another.
	Copy(from, to string) error
	Remove(name string) error
	List() ([]string, error)
}

// Request is a manifest to be resolved.
type Request struct {
	Manifest *manifest.Manifest // with the values of its variables
	// Say takes the name of what is done next.
	Say func(stage, subject string)
	// Step reports concurrent work by its name, until done is called.
	Step func(stage, subject string) (done func(error))
	// Shared are the links of other deployments.
	Shared func(deployment string) (providers []link.Provider, exists bool)
}

// Config is what a Loop is made of.
type Config struct {
	Store   *store.Store
	Volumes Volumes
	// Resolve brings the images of a manifest's releases here, and renders their
	// jobs.
	Resolve func(context.Context, Request) (*bosh.Deployment, error)
	// Export compiles what an export-release exports.
	Export func(context.Context, ExportRequest) (*Exported, error)
	// AZ returns the tags of an AZ's cells; nil for an AZ that is only a
	// name.
	AZ func(az string) []string
	// Routed waits until names and routes lead where the rows say now; nil: there are none.
	Routed func(context.Context) error
	Log    *slog.Logger
}

// Loop does what was asked of deployments.
type Loop struct {
	Config
	specs specs
	// The disks when volumes without rows were last removed, once that was done.
	swept   []string
	isSwept bool
	wake    chan struct{}

	mu        sync.Mutex
	preparing map[string]context.CancelFunc // by the GUIDs of tasks
	faults    map[string]string             // of instances that cannot run, by their GUIDs
	running   sync.WaitGroup
}

// New makes a Loop.
func New(c Config) *Loop {
	return &Loop{Config: c, specs: specs{known: map[string]*agent.Spec{}}, wake: make(chan struct{}, 1), preparing: map[string]context.CancelFunc{}}
}

// tick is how long a change without a notification goes unnoticed.
const tick = 30 * time.Second

// Run does tasks until ctx ends. What it was at goes on when another Run begins.
func (l *Loop) Run(ctx context.Context) error {
	ctx = store.As(ctx, "bosh director")
	defer l.running.Wait()
	return store.Derive(ctx, l.Store, store.Derivation[work]{Name: "BOSH deployments", Read: l.look, Use: l.act, Tick: tick, Wake: l.wake, Log: l.Log})
}

// work lists what is due.
type work struct {
	open  []*cf.BOSHTask
	first []*order // the first task of each deployment
	disks []string // GUIDs
	// expired reports whether an orphaned disk is kept no longer; at expiry one will be.
	expired bool
	expiry  time.Time
}

// order is a task with the work to do for it.
type order struct {
	*cf.BOSHTask
	change changes
	fault  error // why nothing can be
}

// look finds the first task of each deployment, and decides what to do for it.
func (l *Loop) look(tx *store.Tx) (w work, err error) {
	if w.open, err = store.BOSHTasks.Open(tx); err != nil {
		return w, err
	}
	disks, err := store.BOSHDisks.All(tx)
	for _, d := range disks {
		w.disks = append(w.disks, d.GUID)
	}
	due, next := expired(disks, tx.Now)
	w.expired, w.expiry = len(due) > 0, next
	begun := map[string]bool{}
	for _, t := range w.open {
		if begun[t.DeploymentName] {
			continue
		}
		begun[t.DeploymentName] = true
		o := &order{BOSHTask: t}
		if len(t.Plan) > 0 {
			o.change, o.fault = l.decide(tx, t, diskFaults{})
		}
		w.first = append(w.first, o)
	}
	return w, err
}

// decide decides what to do for a task that is prepared.
func (l *Loop) decide(tx *store.Tx, t *cf.BOSHTask, faults diskFaults) (c changes, err error) {
	row, err := store.BOSHTasks.Get(tx, t.GUID)
	if err != nil || row.State != cf.BOSHProcessing {
		return c, err
	}
	w, err := l.load(tx, row)
	if err != nil {
		return c, err
	}
	w.Disks = faults
	return w.step(), nil
}

func (l *Loop) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// act moves the tasks on, and tells when to look again.
func (l *Loop) act(ctx context.Context, w work) (next time.Time, err error) {
	if !l.isSwept || !slices.Equal(l.swept, w.disks) {
		l.sweep(ctx)
		l.isSwept, l.swept = true, w.disks
	}
	l.abandon(w.open)
	err, next = l.tellFaults(ctx), w.expiry
	if w.expired {
		err = errors.Join(err, l.deleteExpired(ctx))
	}
	for _, o := range w.first {
		at, fault := l.do(ctx, o)
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
		err = errors.Join(err, fault)
	}
	return next, err
}

// do moves a task on.
func (l *Loop) do(ctx context.Context, o *order) (time.Time, error) {
	t, c := o.BOSHTask, o.change
	switch {
	case len(t.Plan) == 0:
		l.begin(ctx, t)
		return time.Time{}, nil
	case isBroken(o.fault):
		return time.Time{}, l.fail(ctx, t, o.fault)
	case o.fault != nil || c.empty():
		return c.Wake, o.fault
	}
	if len(c.Copies) > 0 {
		defer l.wakeUp()
		return time.Time{}, l.renewDisks(ctx, t, c.Copies)
	}
	if err := l.dropDisks(c.Discard); err != nil {
		return time.Time{}, err
	}
	faults, err := l.makeDisks(ctx, c)
	if err != nil {
		return time.Time{}, err
	}
	l.awaitRouted(ctx)
	var gone []string
	err = l.Store.Write(ctx, func(tx *store.Tx) (err error) {
		if c, err = l.decide(tx, t, faults); err != nil {
			return err
		}
		gone, err = l.write(tx, t, c)
		return err
	})
	if err == nil {
		err = l.dropDisks(gone)
	}
	l.wakeUp() // there may be more to do at once
	return c.Wake, err
}

// routedTime is how long a task waits at most for names to lead to an instance that runs.
const routedTime = 10 * time.Second

// awaitRouted has what comes next find the instances that run: an errand or script asks for their
// names once, and so does who hears that a task has ended.
func (l *Loop) awaitRouted(ctx context.Context) {
	if l.Routed == nil {
		return
	}
	wait, cancel := context.WithTimeoutCause(ctx, routedTime, fmt.Errorf("after %s", routedTime))
	defer cancel()
	if err := l.Routed(wait); err != nil && ctx.Err() == nil {
		l.Log.WarnContext(ctx, "a task of a deployment goes on before all names of instances are known", "err", err)
	}
}

// abandon ends the preparation of tasks that were cancelled.
func (l *Loop) abandon(open []*cf.BOSHTask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for guid, cancel := range l.preparing {
		if !slices.ContainsFunc(open, func(t *cf.BOSHTask) bool { return t.GUID == guid }) {
			cancel()
		}
	}
}

// begin prepares a task, unless that is being done.
func (l *Loop) begin(ctx context.Context, t *cf.BOSHTask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.preparing[t.GUID] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	l.preparing[t.GUID] = cancel
	l.running.Go(fault.Func("director", func() {
		defer cancel()
		err := fault.Guard("director", func() error { return l.prepare(ctx, t) })
		if err != nil && ctx.Err() == nil {
			err = l.giveUp(ctx, t, err)
		}
		l.mu.Lock()
		delete(l.preparing, t.GUID)
		l.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			l.Log.ErrorContext(ctx, "task of a deployment was not begun", "deployment", t.DeploymentName, "task", t.Number, "err", err)
		}
		l.wakeUp()
	}))
}

// fail ends a task that cannot go on.
func (l *Loop) fail(ctx context.Context, t *cf.BOSHTask, why error) error {
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		row, err := store.BOSHTasks.Get(tx, t.GUID)
		if err != nil || row.State != cf.BOSHProcessing {
			return err
		}
		row.State, row.Result, row.EndedAt = cf.BOSHError, why.Error(), tx.Now
		if err := errors.Join(abort(tx, t, why.Error()), endEvents(tx, t, why.Error())); err != nil {
			return err
		}
		return endTask(tx, row)
	})
}

// giveUp ends a task that could not be prepared.
func (l *Loop) giveUp(ctx context.Context, t *cf.BOSHTask, why error) error {
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		row, err := unplanned(tx, t)
		if err != nil || row == nil {
			return err
		}
		row.State, row.Result, row.EndedAt = cf.BOSHError, why.Error(), tx.Now
		if err := endEvents(tx, t, why.Error()); err != nil {
			return err
		}
		return endTask(tx, row)
	})
}

// endEvents notes that what a task was doing last has failed.
func endEvents(tx *store.Tx, t *cf.BOSHTask, why string) error {
	all, err := store.BOSHTaskEvents.By(tx, "task_guids", t.GUID)
	if err != nil || len(all) == 0 || all[len(all)-1].State != "started" {
		return err
	}
	last := all[len(all)-1]
	return store.BOSHTaskEvents.Insert(tx, &cf.BOSHTaskEvent{TaskGUID: t.GUID, Stage: last.Stage, Subject: last.Subject, State: "failed", Detail: why})
}
