package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	guard "cupola/runtime/fault"
	"cupola/server/osb"
	"cupola/server/outbound"
	"cupola/store"
	"cupola/store/cf"
)

// Config is what a Loop is made of. The zero value of a time takes the default
// that stands with it.
type Config struct {
	Store   *store.Store
	Client  *osb.Client // nil: one for APIInfo and Network
	Log     *slog.Logger
	APIInfo string           // where brokers find the platform's API; see osb.Config
	Network outbound.Network // by which brokers are reached

	FirstPoll   time.Duration // until the first poll; it doubles with every poll: 1 s
	LongestPoll time.Duration // 60 s, Cloud Controller's interval
	LongestRun  time.Duration // of an asynchronous operation: 7 days, Cloud Controller's
	OrphanRetry time.Duration // until an orphan is tried again; it doubles up to an hour: 2 s
	OrphanCare  time.Duration // until an orphan is left where it is: 7 days
}

const (
	firstPoll    = time.Second
	longestPoll  = time.Minute
	longestRun   = 7 * 24 * time.Hour
	longestRetry = 24 * time.Hour // that a broker's Retry-After may ask for
	orphanRetry  = 2 * time.Second
	orphanRest   = time.Hour
	tick         = 30 * time.Second
	again        = time.Second // after an error of the database
)

// How many requests are made at once: so that one broker that is slow does not
// hold up the others.
const (
	maxRequests  = 64
	maxPerBroker = 8
)

// Loop takes jobs through their brokers.
type Loop struct {
	Config
	wake    chan struct{}
	workers sync.WaitGroup

	mu      sync.Mutex
	running map[string]string // operation GUID → broker GUID
}

// New makes a Loop.
func New(c Config) *Loop {
	for _, d := range []struct {
		value *time.Duration
		none  time.Duration
	}{{&c.FirstPoll, firstPoll}, {&c.LongestPoll, longestPoll}, {&c.LongestRun, longestRun}, {&c.OrphanRetry, orphanRetry},
		{&c.OrphanCare, longestRun}} {
		if *d.value == 0 {
			*d.value = d.none
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Client == nil {
		c.Client = osb.New(osb.Config{APIInfo: c.APIInfo, RootCAs: c.Network.RootCAs})
	}
	return &Loop{Config: c, wake: make(chan struct{}, 1), running: map[string]string{}}
}

// Run works until ctx ends, which ends the requests that are under way too.
// What is undone then is done by the next Run.
func (l *Loop) Run(ctx context.Context) error {
	ctx = store.As(ctx, "broker operations")
	defer l.workers.Wait()
	return store.Derive(ctx, l.Store, store.Derivation[round]{Name: "broker operations", Read: l.look, Use: l.startDue, Tick: tick, Wake: l.wake, Log: l.Log})
}

// round is the work to do.
type round struct {
	fresh bool    // there are jobs without operations
	due   []*step // whose time has come
	next  time.Time
	fault error // of others, which could not be looked at
}

func (l *Loop) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// look finds what is due. What is busy is asked before the rows are read: what ends
// meanwhile is not to be begun again.
func (l *Loop) look(tx *store.Tx) (r round, err error) {
	busy := l.busy()
	if r.fresh, err = store.BrokerOperations.HasJobs(tx, jobKinds...); err != nil {
		return r, err
	}
	if r.next, _, err = store.BrokerOperations.Next(tx); err != nil {
		return r, err
	}
	ops, err := store.BrokerOperations.Due(tx, busy, maxPerBroker, maxRequests)
	for _, op := range ops {
		s, fault := load(tx, op)
		if fault != nil {
			r.fault = errors.Join(r.fault, fmt.Errorf("operation %s: %w", op.GUID, fault))
			continue
		}
		r.due = append(r.due, s)
	}
	return r, err
}

// startDue starts the steps for which there is room, and makes operations of new
// jobs. The end of each step makes room too, and wakes the loop.
func (l *Loop) startDue(ctx context.Context, r round) (next time.Time, err error) {
	for _, s := range r.due {
		if l.enter(s.op) {
			l.start(ctx, s)
		}
	}
	if r.fresh {
		err = l.Store.Write(ctx, func(tx *store.Tx) error { return store.BrokerOperations.Begin(tx, jobKinds...) })
	}
	return r.next, errors.Join(err, r.fault)
}

// busy are the operations of which a step is being made.
func (l *Loop) busy() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.running))
}

// start makes a step in the background.
func (l *Loop) start(ctx context.Context, s *step) {
	l.workers.Go(guard.Func("broker", func() {
		defer l.wakeUp()
		defer l.leave(s.op)
		err := guard.Guard("broker", func() error { return l.make(ctx, s) })
		if err == nil || ctx.Err() != nil {
			return
		}
		l.Log.ErrorContext(ctx, "step of a broker operation was not made", "job_guid", s.op.JobGUID, "err", err)
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}))
}

// enter takes room for a step, if there is some.
func (l *Loop) enter(op *cf.BrokerOperation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, b := range l.running {
		if b == op.BrokerGUID {
			n++
		}
	}
	if len(l.running) >= maxRequests || n >= maxPerBroker {
		return false
	}
	l.running[op.GUID] = op.BrokerGUID
	return true
}

func (l *Loop) leave(op *cf.BrokerOperation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, op.GUID)
}

// make asks the broker and writes what came of it. What the loop saw may have
// changed while the broker was asked: it is loaded again.
func (l *Loop) make(ctx context.Context, s *step) error {
	var a answer
	if s.asks() {
		if err := l.note(ctx, s); err != nil {
			return err
		}
		a = l.ask(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err() // its outcome is unknown: it is asked again
		}
	}
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		op, err := store.BrokerOperations.Get(tx, s.op.GUID)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		now, err := load(tx, op)
		if err != nil {
			return err
		}
		now.asked = s
		return l.record(tx, now, a)
	})
}

// note records that the daemon is about to ask a broker to make something. A daemon
// that finds the record later asks again: it cannot know the result of the first request.
func (l *Loop) note(ctx context.Context, s *step) error {
	if s.op.Phase != cf.PhaseSend || !s.task.words().creates {
		return nil
	}
	s.resent = s.op.Attempts > 0
	s.op.Attempts++
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		err := store.BrokerOperations.Update(tx, s.op)
		if store.IsNotFound(err) {
			return nil // no operation waits for it
		}
		return err
	})
}

// ask makes the request of a step.
func (l *Loop) ask(ctx context.Context, s *step) answer {
	if s.op.Phase == cf.PhasePoll {
		return s.task.poll(ctx, l, s)
	}
	return s.task.send(ctx, l, s)
}
