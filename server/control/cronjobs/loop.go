package cronjobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// Config is what a Loop needs.
type Config struct {
	Store    *store.Store
	Platform *control.Platform
	// Call makes the request of a call of a space and says how it was answered. An answer
	// that is not one of success is an error. If ctx ends meanwhile, the error says why.
	Call func(ctx context.Context, spaceGUID string, call *cf.AppJob) (answer string, err error)
	Log  *slog.Logger
}

// Loop starts the runs of jobs of apps that are due, and notes how runs end.
type Loop struct {
	Config
	running sync.WaitGroup // requests

	mu       sync.Mutex
	requests map[string]*answer // of runs, by GUID; nil for one that is under way
}

// NewLoop makes a Loop.
func NewLoop(c Config) *Loop {
	return &Loop{Config: c, requests: map[string]*answer{}}
}

// Run works until ctx ends, which ends the requests that are under way too.
func (l *Loop) Run(ctx context.Context) error {
	const name = "jobs of apps"
	defer l.running.Wait()
	return store.Derive(store.As(ctx, name), l.Store, store.Derivation[round]{Name: name, Read: l.look, Use: l.work, Log: l.Log})
}

// Once does what is due now.
func (l *Loop) Once(ctx context.Context) error {
	return store.DeriveOnce(ctx, l.Store, l.look, func(ctx context.Context, r round) error {
		_, err := l.work(ctx, r)
		return err
	})
}

// round lists what is due.
type round struct {
	due   []string  // schedules, by GUID
	ended []string  // runs that have ended, or take too long, by GUID
	calls []string  // runs of calls whose request is due, by GUID
	next  time.Time // when there is more
}

// look finds what is due in a read transaction: most looks find
// nothing.
func (l *Loop) look(tx *store.Tx) (r round, err error) {
	schedules, err := store.JobSchedules.Enabled(tx)
	if err != nil {
		return r, err
	}
	for _, s := range schedules {
		if s.NextAt.After(tx.Now) {
			r.until(s.NextAt)
			continue
		}
		r.due = append(r.due, s.GUID)
	}
	running, err := store.JobExecutions.Running(tx)
	if err != nil || len(running) == 0 {
		return r, err
	}
	return r, l.lookAtRunning(tx, &r, running)
}

// until notes a time at which there is something to do.
func (r *round) until(t time.Time) {
	if r.next.IsZero() || t.Before(r.next) {
		r.next = t
	}
}

// lookAtRunning finds the runs that have ended or take too long.
func (l *Loop) lookAtRunning(tx *store.Tx, r *round, running []*cf.JobExecution) error {
	tasks, err := byGUID(tx, store.Tasks, control.GUIDs(running, func(x *cf.JobExecution) string { return x.TaskGUID }), func(t *cf.Task) string { return t.GUID })
	if err != nil {
		return err
	}
	jobs, err := byGUID(tx, store.AppJobs, control.GUIDs(running, func(x *cf.JobExecution) string { return x.JobGUID }), func(j *cf.AppJob) string { return j.GUID })
	if err != nil {
		return err
	}
	for _, x := range running {
		t, j := tasks[x.TaskGUID], jobs[x.JobGUID]
		switch {
		case j != nil && j.Kind == cf.KindCall:
			l.lookAtCall(r, x)
		case t == nil || t.State == cf.TaskSucceeded || t.State == cf.TaskFailed:
			r.ended = append(r.ended, x.GUID)
		case j == nil || t.State == cf.TaskCanceling:
		case !deadline(j, x).After(tx.Now):
			r.ended = append(r.ended, x.GUID)
		default:
			r.until(deadline(j, x))
		}
	}
	return nil
}

func byGUID[T any](tx *store.Tx, t *store.Table[T], guids []string, guid func(*T) string) (map[string]*T, error) {
	rows, err := t.By(tx, "guids", guids...)
	all := map[string]*T{}
	for _, r := range rows {
		all[guid(r)] = r
	}
	return all, err
}

// work does what is due, each in a transaction. Runs are noted as ended first: the
// next may be due.
func (l *Loop) work(ctx context.Context, r round) (next time.Time, err error) {
	for _, guid := range r.ended {
		if fault := l.recordEnd(ctx, guid); fault != nil {
			err = errors.Join(err, fmt.Errorf("run %s: %w", guid, fault))
		}
	}
	for _, guid := range r.calls {
		if fault := l.request(ctx, guid); fault != nil {
			err = errors.Join(err, fmt.Errorf("call %s: %w", guid, fault))
		}
	}
	for _, guid := range r.due {
		if fault := l.begin(ctx, guid); fault != nil {
			err = errors.Join(err, fmt.Errorf("schedule %s: %w", guid, fault))
		}
	}
	return r.next, err
}

// recordEnd notes how a run has ended.
func (l *Loop) recordEnd(ctx context.Context, guid string) error {
	err := l.inSession(ctx, func(c *control.Session) error {
		x, err := store.JobExecutions.Get(c.Tx, guid)
		if err != nil || x.State != cf.ExecutionRunning {
			return control.IfFound(err)
		}
		j, err := store.AppJobs.Get(c.Tx, x.JobGUID)
		if err != nil {
			return control.IfFound(err)
		}
		app, err := store.Apps.Get(c.Tx, j.AppGUID)
		if err != nil {
			return control.IfFound(err)
		}
		c.Actor = actor(j)
		if j.Kind == cf.KindCall {
			return l.recordCallEnd(c, app, j, x)
		}
		return recordTaskEnd(c, app, j, x)
	})
	if err == nil {
		l.forget(guid)
	}
	return err
}

// begin starts the run of a schedule that is due.
func (l *Loop) begin(ctx context.Context, guid string) error {
	err := l.atSchedule(ctx, guid, begin)
	refused, ok := errors.AsType[*cf.Error](err)
	if !ok {
		return err
	}
	return l.atSchedule(ctx, guid, func(c *control.Session, s *cf.JobSchedule) error { return fail(c, s, refused) })
}

// atSchedule runs f for a schedule that is due, as its job.
func (l *Loop) atSchedule(ctx context.Context, guid string, f func(*control.Session, *cf.JobSchedule) error) error {
	return l.inSession(ctx, func(c *control.Session) error {
		s, err := store.JobSchedules.Get(c.Tx, guid)
		if err != nil || !s.Enabled || s.NextAt.After(c.Tx.Now) {
			return control.IfFound(err)
		}
		j, err := store.AppJobs.Get(c.Tx, s.JobGUID)
		if err != nil {
			return control.IfFound(err)
		}
		c.Actor = actor(j)
		return f(c, s)
	})
}

// actor is a job as the actor of its runs: it has no rights but those that its schedule was
// made with.
func actor(j *cf.AppJob) *authz.Actor { return &authz.Actor{GUID: j.GUID, Name: j.Name, Type: "job"} }

// inSession runs f in a transaction.
func (l *Loop) inSession(ctx context.Context, f func(*control.Session) error) error {
	return control.InSession(ctx, l.Store, l.Platform, f)
}
