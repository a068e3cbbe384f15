package sleep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// Router holds the requests to apps that sleep: a router.Router.
type Router interface {
	IdleSince(appGUID string) time.Time
	Asleep(appGUID string) bool
	Doze(appGUID string, since time.Time) bool
	Rouse(appGUID string)
	Hold(ctx context.Context, appGUID string) (release func(), err error)
	Serves(appGUID string) bool
}

// ErrNoFreezer says that an instance cannot be frozen at all.
var ErrNoFreezer = errors.New("the machine has no cgroup freezer")

// Config is what a Loop is made of.
type Config struct {
	Store    *store.Store
	Router   Router
	Defaults cf.SleepTimes // of apps that say nothing
	// Freeze stops the processes of an instance where they are, or fails with ErrNoFreezer;
	// Thaw lets them go on.
	Freeze     func(ctx context.Context, instanceGUID string) error
	Thaw       func(instanceGUID string) error
	Containers func() []lrp.ContainerStatus
	// Routed waits until the router leads to what the rows say.
	Routed func(context.Context) error
	Logs   func(lrp.LogLine)
	Log    *slog.Logger
}

// Loop lets apps sleep, and wakes them.
type Loop struct {
	Config
	kick chan struct{}

	mu     sync.Mutex
	asleep map[string]*sleeper // by the GUIDs of apps
}

// sleeper is an app that may sleep.
type sleeper struct {
	turn      sync.Mutex // held while it falls asleep or wakes
	state     cf.SleepState
	since     time.Time
	instances []string      // frozen
	limit     time.Duration // of a start
	why       string        // of a wake without a request
}

// New makes a Loop.
func New(c Config) *Loop {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Loop{Config: c, kick: make(chan struct{}, 1), asleep: map[string]*sleeper{}}
}

// Set lets the router hold requests for the apps that slept when the last daemon ended. It
// is called before requests come.
func (l *Loop) Set(ctx context.Context) error {
	return store.DeriveOnce(ctx, l.Store, l.read, func(_ context.Context, w world) error {
		for guid, a := range w {
			if len(a.sleeps) > 0 && a.App != nil && a.hold() {
				l.remember(guid, a, a.sleeps[0].State, a.sleeps[0].Since)
				l.Router.Doze(guid, time.Now().Add(time.Hour)) // whenever the last request was
			}
		}
		return nil
	})
}

// Run lets apps sleep until ctx ends. Those that sleep then sleep on.
func (l *Loop) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fault.Go("sleep", func() { l.watchFrozen(ctx) })
	return store.Derive(ctx, l.Store, store.Derivation[world]{Name: "sleep", Read: l.read, Use: l.use, Tick: whileNone, Wake: l.kick, Log: l.Log})
}

func (l *Loop) read(tx *store.Tx) (world, error) { return load(tx, l.Defaults) }

const (
	// minPause keeps many apps with requests from being looked at one by one.
	minPause = time.Second
	// whileFrozen is how long it goes unnoticed that an instance is frozen or thawed by others.
	whileFrozen = 30 * time.Second
	// whileNone is how long apps are left alone while no row changes, no time passes that was waited for, and none is frozen: to
	// read a thousand takes 14 MB.
	whileNone = 5 * time.Minute
)

// watchFrozen lets the loop look at all apps while any instance is frozen.
func (l *Loop) watchFrozen(ctx context.Context) {
	ticker := time.NewTicker(whileFrozen)
	defer ticker.Stop()
	was := false
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		is := len(l.frozen()) > 0
		if is || was {
			l.look()
		}
		was = is
	}
}

// use acts on all apps.
func (l *Loop) use(ctx context.Context, w world) (next time.Time, err error) {
	frozen := l.frozen()
	now := time.Now()
	for _, guid := range w.guids() {
		v := step(*w[guid], now, l.Router.IdleSince(guid), func(instance string) bool { return frozen[instance] })
		switch {
		case v.deed != nothing:
			err = errors.Join(err, l.do(ctx, guid, w[guid], v))
		case !v.at.IsZero() && (next.IsZero() || v.at.Before(next)):
			next = v.at
		}
	}
	l.forgetGone(w)
	err = errors.Join(err, l.thawStray(w, frozen))
	if soonest := now.Add(minPause); !next.IsZero() && next.Before(soonest) {
		next = soonest
	}
	return next, err
}

// frozen are the instances that are frozen.
func (l *Loop) frozen() map[string]bool {
	all := map[string]bool{}
	for _, c := range l.Containers() {
		if c.Frozen {
			all[c.GUID] = true
		}
	}
	return all
}

// thawStray thaws what is frozen though no app sleeps that it is of: the rows may be those
// of a backup.
func (l *Loop) thawStray(w world, frozen map[string]bool) (err error) {
	for _, a := range w {
		for _, i := range a.instances {
			if len(a.sleeps) > 0 {
				delete(frozen, i.InstanceGUID)
			}
		}
	}
	for guid := range frozen {
		err = errors.Join(err, l.Thaw(guid))
	}
	return err
}

// do does what step decided.
func (l *Loop) do(ctx context.Context, guid string, a *app, v verdict) error {
	switch v.deed {
	case freeze:
		return l.fallAsleep(ctx, guid, a)
	case stop:
		return l.stop(ctx, guid, a)
	case forget:
		return l.forget(ctx, guid)
	}
	s := l.of(guid)
	s.turn.Lock()
	state := s.state
	if s.why == "" {
		s.why = v.why
	}
	s.turn.Unlock()
	if state == "" { // a request has woken it, or it was started again
		return errors.Join(l.thawAll(a), l.drop(ctx, guid))
	}
	fault.Go("sleep", func() {
		if release, err := l.Router.Hold(ctx, guid); err == nil {
			release()
		}
	})
	return nil
}

// thawAll thaws what may have been frozen by an earlier daemon.
func (l *Loop) thawAll(a *app) (err error) {
	for _, i := range a.instances {
		err = errors.Join(err, l.Thaw(i.InstanceGUID))
	}
	return err
}

// of returns the state of an app.
func (l *Loop) of(guid string) *sleeper {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.asleep[guid]
	if s == nil {
		s = &sleeper{}
		l.asleep[guid] = s
	}
	return s
}

// remember notes that an app sleeps.
func (l *Loop) remember(guid string, a *app, state cf.SleepState, since time.Time) {
	s := l.of(guid)
	s.state, s.since, s.why, s.instances, s.limit = state, since, "", nil, 0
	for _, i := range a.instances {
		s.instances = append(s.instances, i.InstanceGUID)
	}
	for _, p := range a.processes {
		s.limit = max(s.limit, desire.StartTimeout(p))
	}
}

// fallAsleep freezes an app, unless a request came just now. Where the machine cannot freeze,
// the app is stopped.
func (l *Loop) fallAsleep(ctx context.Context, guid string, a *app) error {
	s := l.of(guid)
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.state != "" || !l.Router.Doze(guid, time.Now().Add(-a.times.After)) {
		return nil
	}
	// First the rows: what a killed daemon had frozen, the next one knows.
	if err := l.write(ctx, a, cf.SleepFrozen); err != nil {
		l.Router.Rouse(guid)
		return err
	}
	l.remember(guid, a, cf.SleepFrozen, time.Now())
	err := l.freeze(ctx, s)
	if errors.Is(err, ErrNoFreezer) {
		s.state = cf.SleepStopped
		err = l.write(ctx, a, cf.SleepStopped)
	}
	if err != nil {
		s.state = ""
		l.Log.Info("app stays awake", "app_guid", guid, "err", err)
		err = errors.Join(l.thaw(s), l.drop(ctx, guid))
		l.Router.Rouse(guid)
		return err
	}
	l.say(guid, "App sleeps after %s without a request", a.times.After)
	return nil
}

// freeze freezes the instances.
func (l *Loop) freeze(ctx context.Context, s *sleeper) error {
	for _, i := range s.instances {
		if err := l.Freeze(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loop) thaw(s *sleeper) (err error) {
	for _, i := range s.instances {
		err = errors.Join(err, l.Thaw(i))
	}
	return err
}

// stop ends the instances of an app that is frozen.
func (l *Loop) stop(ctx context.Context, guid string, a *app) error {
	s := l.of(guid)
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.state != cf.SleepFrozen {
		return nil
	}
	if err := l.write(ctx, a, cf.SleepStopped); err != nil {
		return err
	}
	s.state = cf.SleepStopped
	l.say(guid, "App sleeps without instances after %s asleep", a.times.StopAfter)
	return nil
}

// write writes the rows of an app that sleeps.
func (l *Loop) write(ctx context.Context, a *app, state cf.SleepState) error {
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		for _, p := range a.processes {
			row := &cf.Sleep{ProcessGUID: p.GUID, AppGUID: p.AppGUID, LRP: desire.ProcessGUID(p, a.App), Instances: p.Instances, State: state, Since: tx.Now}
			if err := store.Sleeps.Put(tx, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// drop deletes the rows of an app.
func (l *Loop) drop(ctx context.Context, guid string) error {
	return l.Store.Write(ctx, func(tx *store.Tx) error { return store.Sleeps.DeleteBy(tx, "app_guids", guid) })
}

// forget ends the sleep of an app that has nothing to wake.
func (l *Loop) forget(ctx context.Context, guid string) error {
	s := l.of(guid)
	s.turn.Lock()
	defer s.turn.Unlock()
	s.state = ""
	err := errors.Join(l.thaw(s), l.drop(ctx, guid))
	l.Router.Rouse(guid)
	return err
}

// forgetGone forgets the apps that are not in the world: deleted, or awake for good.
func (l *Loop) forgetGone(w world) {
	l.mu.Lock()
	gone := map[string]*sleeper{}
	for guid, s := range l.asleep {
		if w[guid] == nil {
			gone[guid] = s
			delete(l.asleep, guid)
		}
	}
	l.mu.Unlock()
	for guid, s := range gone {
		s.turn.Lock()
		if s.state != "" {
			s.state = ""
			_ = l.thaw(s) // their containers are stopped
			l.Router.Rouse(guid)
		}
		s.turn.Unlock()
	}
}

// Wake wakes an app for a request, and returns when the router can send it on: at once if
// the app is frozen, and else when an instance serves, within the app's own time for a start.
func (l *Loop) Wake(ctx context.Context, guid string) error {
	s := l.of(guid)
	s.turn.Lock()
	state, limit, slept, why := s.state, s.limit, time.Since(s.since), s.why
	err := l.rouse(ctx, guid, s)
	s.turn.Unlock()
	if err != nil || state == "" {
		return err
	}
	if why == "" {
		why = "a request came"
	}
	l.say(guid, "App wakes after %s: %s", slept.Round(time.Millisecond), why)
	if state == cf.SleepFrozen {
		return nil
	}
	return l.started(ctx, guid, limit)
}

// rouse ends a sleep. Who holds the turn of s calls it.
func (l *Loop) rouse(ctx context.Context, guid string, s *sleeper) error {
	switch s.state {
	case cf.SleepFrozen:
		if err := l.thaw(s); err != nil {
			return err
		}
		s.state = ""
		time.AfterFunc(dropAfter, fault.Func("sleep", l.look)) // drops the rows: a request need not wait for a disk
	case cf.SleepStopped:
		if err := l.drop(ctx, guid); err != nil {
			return err
		}
		s.state = ""
	}
	return nil
}

// dropAfter is how long the rows of an app stay that was woken: one look drops those of many,
// and it is not a burden for the requests that woke them.
const dropAfter = 200 * time.Millisecond

// look runs the loop.
func (l *Loop) look() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// startPoll is how often the router is asked for an instance that starts.
const startPoll = 5 * time.Millisecond

// started waits until an app serves. What is not there in time is no longer waited for: the
// app is awake, and has no instance.
func (l *Loop) started(ctx context.Context, guid string, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no instance is ready after %s", limit))
	defer cancel()
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	err := l.Routed(ctx) // the instances of before are gone from the table
	for err == nil && !l.Router.Serves(guid) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		l.Router.Rouse(guid)
	}
	return err
}

// say writes a line into an app's log.
func (l *Loop) say(appGUID, format string, args ...any) {
	l.Logs(lrp.LogLine{Target: lrp.LogTarget{GUID: appGUID, Source: "API", Instance: "0"}, At: time.Now(), Text: fmt.Appendf(nil, format, args...)})
}
