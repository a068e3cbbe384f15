package alerts

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/guid"
	"cupola/store"
	"cupola/store/cf"
)

// Config is what a Loop is made of.
type Config struct {
	Parts
	Domain     string // of the daemon: what messages are from
	Console    string // its URL
	Command    string // a target that the configuration names; "": none
	StatusFile string // says for doctor which targets fail
	Log        *slog.Logger

	Interval time.Duration // between two looks; 0: 10 s
}

const interval = 10 * time.Second

// Loop looks for problems and notifies the targets.
type Loop struct {
	Config
	all     []source
	workers sync.WaitGroup
	wake    chan struct{} // a target is free again

	mu   sync.Mutex
	busy map[string]bool // targets that get a message now, by GUID

	logged string // the error of the last look
	status string // what StatusFile holds
}

// New makes a Loop.
func New(c Config) *Loop {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	l := &Loop{Config: c, busy: map[string]bool{}, wake: make(chan struct{}, 1)}
	l.all = l.sources()
	return l
}

// Run looks and sends until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	if err := l.SetCommand(ctx, l.Command); err != nil && ctx.Err() == nil {
		l.Log.ErrorContext(ctx, "--alert-command has no effect", "err", err)
	}
	group, ctx := fault.NewGroup(ctx)
	group.Go(fault.ErrFunc("alerts", func() error { return l.watch(ctx) }))
	group.Go(fault.ErrFunc("alerts", func() error { return l.send(ctx) }))
	return group.Wait()
}

// CommandTarget is the name of the target that the configuration names.
const CommandTarget = "command"

// SetCommand keeps the target of the configuration as a row; "" deletes it.
func (l *Loop) SetCommand(ctx context.Context, command string) error {
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		t, err := store.AlertTargets.First(tx, store.Query{Where: map[string][]string{"names": {CommandTarget}}})
		switch {
		case store.IsNotFound(err) && command == "":
			return nil
		case store.IsNotFound(err):
			return store.AlertTargets.Insert(tx, &cf.AlertTarget{Name: CommandTarget, Kind: cf.AlertCommand, Settings: cf.AlertSettings{Command: command}})
		case err != nil:
			return err
		case command == "":
			return store.AlertTargets.Delete(tx, t.GUID)
		case t.Settings.Command == command:
			return nil
		}
		t.Settings.Command = command
		return store.AlertTargets.Update(tx, t)
	})
}

func (l *Loop) watch(ctx context.Context) error {
	tick := time.NewTicker(cmp.Or(l.Interval, interval))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		l.report(ctx, l.look(ctx))
	}
}

// report logs an error of a look once, however often it comes.
func (l *Loop) report(ctx context.Context, err error) {
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
	}
	if text != "" && text != l.logged {
		l.Log.WarnContext(ctx, "alerts do not know all that they look for", "err", err)
	}
	l.logged = text
}

// look finds what is wrong now and writes what changes by that.
func (l *Loop) look(ctx context.Context) error {
	var rules []Rule
	if err := l.Store.Read(ctx, func(tx *store.Tx) (err error) { rules, err = Rules(tx); return err }); err != nil {
		return err
	}
	found, unknown, unsure := gather(ctx, l.all, rules, time.Now())
	w := World{Found: found, Unknown: unknown}
	var steps []Step
	read := func(tx *store.Tx) (err error) {
		steps, err = decide(tx, w)
		return err
	}
	if err := l.Store.Read(ctx, read); err != nil || len(steps) == 0 {
		return errors.Join(unsure, err)
	}
	err := l.Store.Write(store.As(ctx, "alerts"), func(tx *store.Tx) error {
		if err := read(tx); err != nil {
			return err
		}
		return record(tx, steps)
	})
	if err == nil {
		l.log(ctx, steps)
	}
	return errors.Join(unsure, err)
}

// decide runs step on the rows.
func decide(tx *store.Tx, w World) (_ []Step, err error) {
	w.Now = tx.Now
	if w.Rules, err = Rules(tx); err != nil {
		return nil, err
	}
	if w.Open, err = store.Alerts.Open(tx); err != nil {
		return nil, err
	}
	if w.Silences, err = store.AlertSilences.All(tx); err != nil {
		return nil, err
	}
	return step(w), nil
}

// record writes steps, with their events for each target.
func record(tx *store.Tx, steps []Step) error {
	targets, err := store.AlertTargets.All(tx)
	if err != nil {
		return err
	}
	for n := range steps {
		s := &steps[n]
		if err := keep(tx, s); err != nil {
			return err
		}
		if s.Event == "" {
			continue
		}
		for _, t := range targets {
			if err := queue(tx, t.GUID, eventOf(&s.Alert, s.Event, tx.Now)); err != nil {
				return err
			}
		}
	}
	return nil
}

func keep(tx *store.Tx, s *Step) error {
	switch {
	case s.Drop:
		return store.Alerts.Delete(tx, s.Alert.GUID)
	case s.Alert.GUID == "":
		return store.Alerts.Insert(tx, &s.Alert)
	}
	return store.Alerts.Update(tx, &s.Alert)
}

// maxQueued bounds the events that wait for a target: beyond it the oldest are dropped.
const maxQueued = 5000

func queue(tx *store.Tx, target string, e cf.AlertEvent) error {
	e.ID = guid.New()
	if err := store.AlertNotices.Insert(tx, &cf.AlertNotice{Resource: cf.Resource{GUID: e.ID}, TargetGUID: target, Event: e}); err != nil {
		return err
	}
	return store.AlertNotices.DropBeyond(tx, target, maxQueued)
}

func eventOf(a *cf.Alert, kind string, now time.Time) cf.AlertEvent {
	return cf.AlertEvent{Kind: kind, Alert: a.GUID, Rule: a.Rule, Severity: a.Severity, Name: clean(a.Name, maxName), Text: clean(a.Text, maxText), Mend: clean(a.Mend, maxText),
		Since: a.CreatedAt.UTC(), At: now.UTC()}
}

// log says what began to fire, and what is over.
func (l *Loop) log(ctx context.Context, steps []Step) {
	for _, s := range steps {
		a := s.Alert
		switch s.Event {
		case cf.AlertEventFiring:
			l.Log.WarnContext(ctx, "alert", "rule", a.Rule, "subject", a.Name, "text", a.Text)
		case cf.AlertEventResolved:
			l.Log.InfoContext(ctx, "alert resolved", "rule", a.Rule, "subject", a.Name)
		}
	}
}
