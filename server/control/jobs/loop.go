package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"cupola/runtime/fault"
	"cupola/server/control"
	"cupola/server/control/deletion"
	"cupola/store"
	"cupola/store/cf"
)

// Config configures a Loop.
type Config struct {
	Store    *store.Store
	Log      *slog.Logger
	Platform *control.Platform
	// Turn waits until a user may write, and returns what ends that.
	Turn func(ctx context.Context, user string) (leave func(), err error)
	// Show is how jobs show an error.
	Show func(*cf.Error) cf.JobError
}

// Loop works on jobs.
type Loop struct {
	Config
	idle     map[string]bool // the jobs that wait, by GUID
	services string          // the version of service instances and bindings
	looked   time.Time       // when the jobs that wait were last looked at
}

// New makes a Loop.
func New(c Config) *Loop { return &Loop{Config: c, idle: map[string]bool{}} }

// tick is how often waiting jobs are looked at without a change.
const tick = time.Minute

// Run works until ctx ends. It continues the unfinished jobs of an earlier daemon.
func (l *Loop) Run(ctx context.Context) error {
	const name = "waiting jobs"
	return store.Derive(store.As(ctx, name), l.Store, store.Derivation[map[string]string]{Name: name, Read: l.look, Use: l.round, Tick: tick, Log: l.Log})
}

// Once does a round, and reports whether there was anything to do.
func (l *Loop) Once(ctx context.Context) (worked bool, err error) {
	err = store.DeriveOnce(ctx, l.Store, l.look, func(ctx context.Context, jobs map[string]string) error {
		_, err := l.round(ctx, jobs)
		worked = len(jobs) > 0
		return err
	})
	return worked, err
}

// look finds each user's oldest job that can go on. Those that wait do so for
// service instances and bindings to change.
func (l *Loop) look(tx *store.Tx) (map[string]string, error) {
	if len(l.idle) > 0 {
		services, err := tx.ServicesVersion()
		if err != nil {
			return nil, err
		}
		if services != l.services || tx.Now.Sub(l.looked) >= tick {
			clear(l.idle)
			l.services, l.looked = services, tx.Now
		}
	}
	all, err := store.Jobs.Where(tx, map[string][]string{"states": {string(cf.JobProcessing)}, "except": slices.Collect(maps.Keys(l.idle)),
		"operations": {deletion.App, deletion.Space, deletion.Org, deletion.Domain, deletion.Unmapped, Manifest}})
	jobs := map[string]string{}
	for _, j := range all {
		var in input
		_ = json.Unmarshal([]byte(j.Input), &in) // what cannot be read fails the job
		if jobs[in.Actor.GUID] == "" {
			jobs[in.Actor.GUID] = j.GUID
		}
	}
	return jobs, err
}

// round has one transaction for each user, so that a long job delays only its
// user's others. Then it looks again.
func (l *Loop) round(ctx context.Context, jobs map[string]string) (next time.Time, err error) {
	for user, job := range jobs {
		more, err := l.inTurn(ctx, user, job)
		if err != nil && ctx.Err() == nil {
			l.Log.ErrorContext(ctx, "a job could not go on", slog.String("job", job), slog.Any("err", err))
		}
		if !more {
			l.idle[job] = true
		}
		next = time.Now()
	}
	return next, ctx.Err()
}

// inTurn advances a job in its user's turn.
func (l *Loop) inTurn(ctx context.Context, user, job string) (more bool, err error) {
	leave, err := l.Turn(ctx, user)
	if err != nil {
		return false, err
	}
	defer leave()
	return l.Advance(store.As(ctx, user), job)
}

// Advance does one transaction of a job's work, and reports whether there is more
// to do at once. An error of the work fails the job, whose last transaction has
// no effect then; so does a panic.
func (l *Loop) Advance(ctx context.Context, guid string) (more bool, err error) {
	err = control.InSession(ctx, l.Store, l.Platform, func(c *control.Session) error {
		return fault.Guard("jobs", func() (err error) {
			more, err = l.advance(c, guid)
			return err
		})
	})
	switch {
	case err != nil && ctx.Err() == nil:
		return false, l.fail(ctx, guid, err)
	case err != nil:
		return false, err
	}
	return more, nil
}

func (l *Loop) advance(c *control.Session, guid string) (more bool, err error) {
	j, err := store.Jobs.Get(c.Tx, guid)
	if err != nil || j.State != cf.JobProcessing {
		return false, control.IfFound(err)
	}
	e, err := work(c, j)
	switch {
	case err != nil:
		return false, err
	case e.fault != nil:
		j.State, j.Errors = cf.JobFailed, []cf.JobError{l.Show(e.fault)}
	case e.done:
		j.State = cf.JobComplete
	default:
		return e.more, nil
	}
	return false, store.Jobs.Update(c.Tx, j)
}

// fail ends a job for an error. What a user cannot act on is logged.
func (l *Loop) fail(ctx context.Context, guid string, why error) error {
	shown, ok := errors.AsType[*cf.Error](why)
	if !ok {
		l.Log.ErrorContext(ctx, "job failed", slog.String("job", guid), slog.Any("err", why))
		shown = cf.Errorf(cf.Unknown, "An unknown error occurred.")
	}
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		j, err := store.Jobs.Get(tx, guid)
		if err != nil || j.State != cf.JobProcessing {
			return control.IfFound(err)
		}
		j.State, j.Errors = cf.JobFailed, []cf.JobError{l.Show(shown)}
		return errors.Join(store.Jobs.Update(tx, j), store.JobParts.DeleteOf(tx, guid))
	})
}
