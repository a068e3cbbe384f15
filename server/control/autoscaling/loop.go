package autoscaling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// interval is how often apps are measured, and their rules looked at (App Autoscaler: 40 s).
const interval = 20 * time.Second

// pause is how long an app is left alone after a change of it was refused.
const pause = time.Minute

// Config is what a Loop needs.
type Config struct {
	Store    *store.Store
	Platform *control.Platform
	Log      *slog.Logger
	// Gauges are what was measured of an app's web instances since a time: Diego's gauges, by
	// name. nil measures nothing.
	Gauges func(appGUID string, since time.Time) []map[string]float64
	// Requests are those to an app that ended, since the daemon's start or some later time, and
	// how long they took together. nil counts none.
	Requests func(appGUID string) (count int64, took time.Duration)
	Now      func() time.Time // nil: time.Now
}

// Loop measures and scales the apps that have a policy.
type Loop struct {
	Config
	taken   time.Time            // when apps were last measured
	refused map[string]time.Time // by the GUIDs of apps
	counted map[string]requests  // likewise, when apps were last measured

	mu        sync.Mutex
	all       map[string]series           // by the GUIDs of apps
	submitted map[string]map[Metric]tally // likewise, since apps were last measured
}

// NewLoop makes a Loop.
func NewLoop(c Config) *Loop {
	if c.Gauges == nil {
		c.Gauges = func(string, time.Time) []map[string]float64 { return nil }
	}
	if c.Requests == nil {
		c.Requests = func(string) (int64, time.Duration) { return 0, 0 }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Loop{Config: c, refused: map[string]time.Time{}, all: map[string]series{}, submitted: map[string]map[Metric]tally{}}
}

// Points are what was measured of an app, the oldest first.
func (l *Loop) Points(appGUID string, of Metric) []Point {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all[appGUID][of])
}

// Run works until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	const name = "autoscaling"
	return store.Derive(store.As(ctx, name), l.Store, store.Derivation[[]*subject]{Name: name, Read: look, Use: l.round, Log: l.Log})
}

// Once does a round.
func (l *Loop) Once(ctx context.Context) error {
	return store.DeriveOnce(ctx, l.Store, look, func(ctx context.Context, all []*subject) error {
		_, err := l.round(ctx, all)
		return err
	})
}

// look reads the apps with a policy.
func look(tx *store.Tx) (all []*subject, err error) {
	rows, err := store.ScalingPolicies.All(tx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	of := map[string]*subject{}
	for _, row := range rows {
		p, err := stored(row.Policy)
		if err != nil {
			if err := store.ScalingPolicies.LeaveOut(tx, row, row.GUID, err); err != nil {
				return nil, err
			}
			continue
		}
		of[row.AppGUID] = &subject{row: row, policy: p}
	}
	guids := control.GUIDs(rows, func(r *cf.ScalingPolicy) string { return r.AppGUID })
	if err := lookAtApps(tx, of, guids); err != nil {
		return nil, err
	}
	for _, s := range of {
		if s.app != nil {
			all = append(all, s)
		}
	}
	return all, nil
}

func lookAtApps(tx *store.Tx, of map[string]*subject, guids []string) error {
	found, err := store.Apps.By(tx, "guids", guids...)
	for _, a := range found {
		if s := of[a.GUID]; s != nil {
			s.app = a
		}
	}
	if err != nil {
		return err
	}
	web, err := store.Processes.Where(tx, map[string][]string{"app_guids": guids, "types": {"web"}})
	for _, p := range web {
		if s := of[p.AppGUID]; s != nil {
			s.instances += p.Instances
		}
	}
	if err != nil {
		return err
	}
	sleeps, err := store.Sleeps.By(tx, "app_guids", guids...)
	for _, sleep := range sleeps {
		if s := of[sleep.AppGUID]; s != nil {
			s.asleep = true
		}
	}
	return err
}

// round follows the schedules, and measures and scales when it is time to. It looks again at the
// next interval; without policies when there is one.
func (l *Loop) round(ctx context.Context, all []*subject) (next time.Time, err error) {
	now := l.Now()
	due := now.Sub(l.taken) >= interval
	if due {
		l.measure(all, now)
	}
	for _, s := range all {
		if fault := l.attend(ctx, s, now, due); fault != nil && ctx.Err() == nil {
			err = errors.Join(err, fmt.Errorf("app %s: %w", s.app.GUID, fault))
		}
	}
	if len(all) == 0 {
		return time.Time{}, err
	}
	return l.taken.Add(interval), err
}

// measure adds to what is known of the apps, and forgets others.
func (l *Loop) measure(all []*subject, now time.Time) {
	kept, counted := map[string]series{}, map[string]requests{}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range all {
		guid := s.app.GUID
		if kept[guid] = l.all[guid]; kept[guid] == nil {
			kept[guid] = series{}
		}
		count, took := l.Requests(guid)
		counted[guid] = requests{count, took}
		if s.app.State != cf.Started || s.asleep {
			continue
		}
		m := measured{gauges: l.Gauges(guid, now.Add(-interval)), instances: s.instances, submitted: l.submitted[guid]}
		if was, known := l.counted[guid]; known && was.count <= count {
			m.requests, m.during = requests{count - was.count, took - was.took}, now.Sub(l.taken)
		}
		kept[guid].add(now, m)
	}
	l.all, l.counted, l.taken, l.submitted = kept, counted, now, map[string]map[Metric]tally{}
	maps.DeleteFunc(l.refused, func(guid string, _ time.Time) bool { return kept[guid] == nil })
}

// attend does what an app's schedules and rules ask for.
func (l *Loop) attend(ctx context.Context, s *subject, now time.Time, due bool) error {
	if now.Sub(l.refused[s.app.GUID]) < pause {
		return nil
	}
	active, name := s.policy.Schedules.active(now)
	if name != s.row.Schedule {
		return l.change(ctx, s, scheduled(s, active), func(row *cf.ScalingPolicy, _ bool) { row.Schedule = name })
	}
	if !due || s.app.State != cf.Started || s.asleep || now.Before(s.row.RestsTo) {
		return nil
	}
	for _, r := range s.policy.Rules {
		points := l.Points(s.app.GUID, r.Metric)
		if !r.met(points, now) {
			continue
		}
		w := scaling{kind: cf.ScalingDynamic, reason: r.reason(points[len(points)-1].Unit), change: func(n int) int { return apply(r.Adjustment, n) }}
		w.lowest, w.highest = s.limits(active)
		return l.change(ctx, s, w, func(row *cf.ScalingPolicy, scaled bool) {
			if scaled {
				row.RestsTo = now.Add(r.coolDown())
			}
		})
	}
	return nil
}

// scheduled is the scaling of a schedule that begins; nil: of one that ends.
func scheduled(s *subject, begins *Limits) scaling {
	w := scaling{kind: cf.ScalingSchedule, reason: "schedule ends", change: func(n int) int { return n }}
	w.lowest, w.highest = s.limits(begins)
	if begins != nil {
		w.reason = fmt.Sprintf("schedule starts with instance min %d, instance max %d and instance min initial %d", begins.Min, begins.Max, begins.Initial)
		w.lowest = max(w.lowest, begins.Initial)
	}
	return w
}

// change scales an app and notes that in the row of its policy, if that is still the one that was
// read.
func (l *Loop) change(ctx context.Context, s *subject, w scaling, note func(row *cf.ScalingPolicy, scaled bool)) error {
	err := control.InSession(ctx, l.Store, l.Platform, func(c *control.Session) error {
		c.Actor = Actor
		row, app, err := current(c.Tx, s)
		if err != nil || row == nil {
			return err
		}
		scaled, err := w.do(c, app)
		if err != nil {
			return err
		}
		was := *row
		if note(row, scaled); *row == was {
			return nil
		}
		return store.ScalingPolicies.Update(c.Tx, row)
	})
	why, refused := errors.AsType[*cf.Error](err)
	if !refused {
		return err
	}
	l.refused[s.app.GUID] = l.Now()
	return control.InSession(ctx, l.Store, l.Platform, func(c *control.Session) error {
		c.Actor = Actor
		if row, _, err := current(c.Tx, s); err != nil || row == nil {
			return err
		}
		return w.recordFailure(c, s, why)
	})
}

// current are the rows of a subject as they are now; nil if its policy is another.
func current(tx *store.Tx, s *subject) (*cf.ScalingPolicy, *cf.App, error) {
	row, err := store.ScalingPolicies.Get(tx, s.row.GUID)
	if err != nil || row.Policy != s.row.Policy || row.Schedule != s.row.Schedule {
		return nil, nil, control.IfFound(err)
	}
	app, err := store.Apps.Get(tx, row.AppGUID)
	return row, app, err
}
