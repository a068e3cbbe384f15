package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/deletion"
	"cupola/store"
	"cupola/store/cf"
)

// waitingFor is the input of a job that has more to do than one transaction, or
// waits for brokers.
type waitingFor struct {
	Actor    cf.Actor          `json:"actor"`
	Scopes   []string          `json:"scopes,omitempty"`   // of the actor's token
	Bindings []control.Awaited `json:"bindings,omitempty"` // of a manifest
}

func (w *waitingFor) text() (string, error) {
	b, err := json.Marshal(w)
	return string(b), err
}

// waiting answers with a job that ends when its work is done and brokers are.
func (c *call) waiting(operation, resourceType, guid string) (*response, error) {
	j, err := c.waitingJob(operation, resourceType, guid)
	if err != nil {
		return nil, err
	}
	return c.job(j)
}

func (c *call) waitingJob(operation, resourceType, guid string) (*cf.Job, error) {
	w := waitingFor{Actor: c.Who(), Scopes: c.identity.Scopes, Bindings: c.Awaited}
	input, err := w.text()
	c.Then(c.s.wake)
	return &cf.Job{Operation: operation, ResourceGUID: guid, ResourceType: resourceType, State: cf.JobProcessing, Input: input}, err
}

// wake has Run look for jobs.
func (s *Server) wake() {
	select {
	case s.work <- struct{}{}:
	default:
	}
}

// actAs lets a session act for the one who asked for a job, with the roles of now.
func actAs(c *control.Session, w *waitingFor) error {
	c.Rule = authz.SpaceDeveloper // the rule of apply_manifest
	return c.Act(w.Actor, w.Scopes)
}

// resweep is how often jobs that wait are looked at though nothing changed.
const resweep = time.Minute

// Run works on jobs until ctx ends: on those that have more to do than one
// transaction, and those that wait for brokers. What a daemon left unfinished
// goes on.
func (s *Server) Run(ctx context.Context) error {
	ctx = store.As(ctx, "waiting jobs")
	idle := map[string]bool{}
	var was awaited
	return store.Derive(ctx, s.Store, store.Derivation[awaited]{Name: "waiting jobs", Read: readAwaited, Tick: resweep, Wake: s.work, Log: s.Log,
		Use: store.Always(func(ctx context.Context, now awaited) error {
			if now.at.Sub(was.at) >= resweep || now.services != was.services {
				clear(idle)
				was = now
			}
			return s.workJobs(ctx, idle)
		})})
}

// awaited is what jobs may wait for.
type awaited struct {
	at       time.Time
	services string // differs whenever a service instance or a binding has changed
}

// readAwaited reads the jobs, and what they may wait for if there are any.
func readAwaited(tx *store.Tx) (a awaited, err error) {
	a.at = tx.Now
	jobs, err := store.Jobs.Where(tx, waitingJobs())
	if err != nil || len(jobs) == 0 {
		return a, err
	}
	a.services, err = tx.ServicesVersion()
	return a, err
}

// workJobs advances jobs until all wait. Those that wait are idle, by GUID. In a
// round each user has one transaction, for the oldest job: a long job
// delays only its user's others.
func (s *Server) workJobs(ctx context.Context, idle map[string]bool) error {
	for ctx.Err() == nil {
		round, err := s.round(ctx, idle)
		if err != nil || len(round) == 0 {
			return err
		}
		for user, job := range round {
			more, err := s.advanceFor(ctx, user, job)
			if err != nil && ctx.Err() == nil {
				s.Log.ErrorContext(ctx, "a job could not go on", slog.String("job", job), slog.Any("err", err))
			}
			idle[job] = !more
		}
	}
	return nil
}

// advanceFor advances a job in its user's turn.
func (s *Server) advanceFor(ctx context.Context, user, job string) (more bool, err error) {
	leave, err := s.enter(ctx, user, true)
	if err != nil {
		return false, err
	}
	defer leave()
	return s.advance(store.As(ctx, user), job)
}

// waitingJobs are the filters of the jobs that Run works on.
func waitingJobs() map[string][]string {
	return map[string][]string{"states": {string(cf.JobProcessing)},
		"operations": {deletion.App, deletion.Space, deletion.Org, deletion.Domain, deletion.Unmapped, jobApplyManifest}}
}

// round returns each user's oldest job that can go on.
func (s *Server) round(ctx context.Context, idle map[string]bool) (jobs map[string]string, err error) {
	var all []*cf.Job
	err = s.Store.Read(ctx, func(tx *store.Tx) (err error) {
		all, err = store.Jobs.Where(tx, waitingJobs())
		return err
	})
	jobs = map[string]string{}
	for _, j := range all {
		var w waitingFor
		if err := json.Unmarshal([]byte(j.Input), &w); err != nil {
			s.Log.ErrorContext(ctx, "a job could not go on", slog.String("job", j.GUID), slog.Any("err", err))
			idle[j.GUID] = true
			continue
		}
		if user := w.Actor.GUID; !idle[j.GUID] && jobs[user] == "" {
			jobs[user] = j.GUID
		}
	}
	return jobs, err
}

// jobEnd is what has become of a job: it is done, or failed, or has more to do.
// Else it waits.
type jobEnd struct {
	done  bool
	fault *cf.Error
	more  bool
}

// advance does one transaction of a job's work, and reports whether there is more
// to do at once. An error of the work fails the job, whose last transaction has
// no effect then.
func (s *Server) advance(ctx context.Context, guid string) (more bool, err error) {
	c := &control.Session{}
	err = s.Store.Write(ctx, func(tx *store.Tx) (err error) {
		defer recovered(&err)
		*c = control.Session{Tx: tx, Writes: true, Platform: &s.Platform}
		more, err = advanceJob(c, guid)
		return err
	})
	if err != nil && ctx.Err() == nil {
		return false, s.failJob(ctx, guid, err)
	}
	if err != nil {
		return false, err
	}
	for _, f := range c.After {
		f()
	}
	return more, nil
}

// recovered makes an error of a panic: one job's fails that job only.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

func advanceJob(c *control.Session, guid string) (more bool, err error) {
	j, err := store.Jobs.Get(c.Tx, guid)
	if err != nil || j.State != cf.JobProcessing {
		return false, control.IfFound(err)
	}
	var w waitingFor
	if err := json.Unmarshal([]byte(j.Input), &w); err != nil {
		return false, err
	}
	end, err := work(c, j, &w)
	switch {
	case err != nil:
		return false, err
	case end.fault != nil:
		j.State, j.Errors = cf.JobFailed, []cf.JobError{jobError(end.fault)}
	case end.done:
		j.State = cf.JobComplete
	default:
		return end.more, nil
	}
	return false, store.Jobs.Update(c.Tx, j)
}

// failJob ends a job for an error. What a user cannot act on is logged.
func (s *Server) failJob(ctx context.Context, guid string, why error) error {
	var fault *cf.Error
	if !errors.As(why, &fault) {
		s.Log.ErrorContext(ctx, "job failed", slog.String("job", guid), slog.Any("err", why))
		fault = cf.Errorf(cf.Unknown, "An unknown error occurred.")
	}
	return s.Store.Write(ctx, func(tx *store.Tx) error {
		j, err := store.Jobs.Get(tx, guid)
		if err != nil || j.State != cf.JobProcessing {
			return control.IfFound(err)
		}
		j.State, j.Errors = cf.JobFailed, []cf.JobError{jobError(fault)}
		return errors.Join(store.Jobs.Update(tx, j), tx.DeleteJobParts(guid))
	})
}

// work does one transaction of a job's work.
func work(c *control.Session, j *cf.Job, w *waitingFor) (end jobEnd, err error) {
	if j.Operation == jobApplyManifest {
		return applyNext(c, j, w)
	}
	c.Actor = &authz.Actor{GUID: w.Actor.GUID, Name: w.Actor.Name, Type: w.Actor.Type}
	d := &deletion.Progress{Since: j.CreatedAt}
	end.done, err = deletion.Delete(c, j, d)
	end.more = d.More
	if err == nil && !end.done && !end.more && d.Left == 0 {
		end.fault = d.Fault(c, j)
	}
	return end, err
}
