package reconcile

import (
	"context"
	"log/slog"
	"time"

	"cupola/runtime/fairqueue"
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// Cell is what the loop needs of a cell. Start and Stop return at once; what
// happens to a container is reported as events, which go to Loop.Event.
type Cell interface {
	Start(lrp.Container)
	Stop(guid string)
	SetFiles(guid string, files []lrp.File) error
	SetLogTags(guid string, tags map[string]string) error
	Containers() []lrp.ContainerStatus
	Stats(guid string) (lrp.Stats, bool)
	Presence() lrp.Cell
}

// Config is what a Loop is made of.
type Config struct {
	Store *store.Store
	Cells []Cell
	API   string // URL of the API, in the environment of apps
	// Pull takes an image into the cache. It is required where apps may name
	// images as their stack.
	Pull Pull
	// StackVersion names what a stack is made of: another name, other files. "", and nil:
	// no staging is skipped.
	StackVersion func(stack string) string
	// Whole reads the bits of a droplet that a build would take, and fails if some are gone or
	// damaged. It is required where StackVersion is.
	Whole func(ctx context.Context, digest string) error
	// Sources derive what is desired besides.
	Sources []Source
	BBS     *bbsrows.Cache // reads what the BBS was asked for; nil makes one
	// Release makes the task of an app's release command; nil: there are none.
	Release func(tx *store.Tx, b *cf.Build, d *cf.Droplet) (*cf.Task, error)
	Observe func(Look)        // called after every look; may be nil
	Logs    func(lrp.LogLine) // writes a line to an app's log; may be nil
	Log     *slog.Logger
}

// Loop makes what runs like what is desired.
type Loop struct {
	store    *store.Store
	cells    []Cell
	api      string
	bbs      *bbsrows.Cache
	sources  []Source
	images   *images
	logs     func(lrp.LogLine)
	observer func(Look)
	log      *slog.Logger
	fetches  *fetches
	checks   *checks
	versions func(stack string) string
	release  releaser
	wake     chan struct{}

	processes madeProcesses // of the last look; of Run's goroutine
}

// tick is Diego's convergence interval: how long a lost event goes unnoticed.
const tick = 30 * time.Second

// New makes a Loop. Set it to take the cells' events before the cells run.
func New(c Config) *Loop {
	l := &Loop{store: c.Store, cells: c.Cells, api: c.API, bbs: c.BBS, sources: c.Sources, observer: c.Observe, logs: c.Logs, log: c.Log, versions: c.StackVersion, wake: make(chan struct{}, 1)}
	if l.bbs == nil {
		l.bbs = bbsrows.New()
	}
	if l.logs == nil {
		l.logs = func(lrp.LogLine) {}
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	c.Logs = l.logs
	l.images = newImages(c, l.Wake)
	l.release = c.Release
	l.checks = &checks{whole: c.Whole, say: l.logs, log: l.log, done: l.Wake, queue: fairqueue.New(maxChecks, maxOrgChecks), builds: map[string]*check{}}
	l.fetches = &fetches{pull: c.Pull, release: c.Release, store: c.Store, logs: l.logs, log: l.log, done: l.Wake,
		queue: fairqueue.New(maxFetches, maxOrgFetches), builds: map[string]*fetch{}}
	return l
}

// Wake wakes the loop, as after a change of rows that it does not watch.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Freed wakes the loop after a cell released a container's resources: the event of the
// container's end came while the cell still counted them.
func (l *Loop) Freed() { l.Wake() }

// Run reconciles until ctx ends. Containers keep running then.
func (l *Loop) Run(ctx context.Context) error {
	ctx = store.As(ctx, "scheduler")
	defer l.fetches.end()
	defer l.images.end()
	defer l.checks.end()
	return store.Derive(ctx, l.store, store.Derivation[decision]{Name: "schedule", Read: l.decide, Use: l.act, Tick: tick, Wake: l.wake, Log: l.log})
}

// decision is a world and the actions that a plan decided for it.
type decision struct {
	World
	actions []Action
	began   time.Time
	damaged damaged
}

// decide looks at the world and plans. The cells are looked at before the rows,
// which the transaction's first statement fixes: a row that was claimed by an
// earlier step then has its container, or has lost it.
func (l *Loop) decide(tx *store.Tx) (d decision, err error) {
	cells := l.look()
	d.began = time.Now()
	if d.World, err = l.load(tx, cells); err != nil {
		return d, err
	}
	if d.damaged = damagedIn(tx); !d.damaged.any() {
		d.actions = Plan(d.World)
	}
	return d, nil
}

// act writes a decision, calls the cells, and returns when to look again.
func (l *Loop) act(ctx context.Context, d decision) (next time.Time, err error) {
	if d.damaged.any() {
		return time.Now().Add(time.Second), l.mend(ctx, d.damaged)
	}
	l.fetches.keep(d.Work)
	l.checks.keep(d.Work)
	l.images.keep()
	l.observe(d.World, d.actions, d.began)
	effects, err := l.write(ctx, d.actions)
	if err != nil {
		return next, err
	}
	for _, t := range effects {
		if t.cellID == "" {
			t.effect(ctx, nil)
		}
		for _, c := range l.cells {
			if c.Presence().ID == t.cellID {
				t.effect(ctx, c)
			}
		}
	}
	return wake(d.World), nil
}

// write writes the actions and returns the effects on cells.
func (l *Loop) write(ctx context.Context, actions []Action) (effects []cellEffect, err error) {
	if len(actions) == 0 {
		return nil, nil
	}
	err = l.store.Write(ctx, func(tx *store.Tx) (err error) {
		effects, err = l.commit(tx, actions)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.Wake() // more may be due after these actions
	for _, a := range actions {
		l.log.Debug("action was decided", "action", a.String())
	}
	return effects, nil
}

func (l *Loop) look() []CellState {
	var cells []CellState
	for _, c := range l.cells {
		cells = append(cells, CellState{Cell: c.Presence(), Containers: c.Containers()})
	}
	return cells
}

// Retire ends an instance of an app's process so that a new one takes its place. One that is
// not there, as of a stopped app, needs no more.
func (l *Loop) Retire(ctx context.Context, p *cf.Process, a *cf.App, index int) error {
	return l.retire(ctx, lrp.Key{ProcessGUID: desire.ProcessGUID(p, a), Index: index})
}

func (l *Loop) retire(ctx context.Context, key lrp.Key) error {
	defer l.Wake()
	return l.store.Write(ctx, func(tx *store.Tx) error {
		_, err := store.ActualLRPs.Retire(tx, key)
		return err
	})
}
