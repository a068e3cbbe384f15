package broker

import (
	"errors"
	"time"

	"cupola/server/osb"
	"cupola/store"
	"cupola/store/cf"
)

// record writes what came of a step.
func (l *Loop) record(tx *store.Tx, s *step, a answer) error {
	switch {
	case s.done:
		return store.BrokerOperations.Delete(tx, s.op.GUID)
	case s.cancelled != nil:
		return l.vanished(tx, s, a)
	case a.wait:
		return l.wait(tx, s)
	case s.op.Phase == cf.PhasePoll:
		return l.recordPoll(tx, s, a)
	case a.err != nil:
		return l.refused(tx, s, a)
	case a.async:
		return l.began(tx, s, a)
	}
	return l.succeed(tx, s, a)
}

// vanished ends an operation that is no longer needed. If its row was deleted
// meanwhile, what the broker may have made is an orphan.
func (l *Loop) vanished(tx *store.Tx, s *step, a answer) error {
	if s.cancelled.shown.Code != codeNotFound {
		return l.end(tx, s, s.cancelled)
	}
	was := s.asked
	if was.asks() && was.task.words().creates && (a.err == nil && !a.wait || a.unsure || was.resent || osb.Orphan(a.err)) {
		if err := addOrphan(tx, was); err != nil {
			return err
		}
	}
	if s.task.words().deletes {
		return l.end(tx, s, nil)
	}
	return l.end(tx, s, s.cancelled)
}

// refused ends an operation that the broker did not begin.
func (l *Loop) refused(tx *store.Tx, s *step, a answer) error {
	return l.fail(tx, s, sendFault(s, a.err), a.unsure || s.asked.resent || osb.Orphan(a.err))
}

// waiter is a task that other things come before.
type waiter interface {
	waits(tx *store.Tx, s *step) error
}

func (l *Loop) wait(tx *store.Tx, s *step) error {
	if w, ok := s.task.(waiter); ok {
		err := w.waits(tx, s)
		if f, ok := asFault(err); ok {
			return l.fail(tx, s, f, false)
		}
		if err != nil {
			return err
		}
	}
	// What is still not done takes its time, and clients that do not want to wait need
	// to know (CC: jobs/v3/recursive_delete_service_instance_job.rb, PollableJobWrapper).
	if s.op.Attempts > 0 {
		if err := s.polls(tx); err != nil {
			return err
		}
	}
	return l.later(tx, s, l.FirstPoll)
}

// polls shows that the job waits for someone else.
func (s *step) polls(tx *store.Tx) error {
	if s.job == nil || s.job.State == cf.JobPolling {
		return nil
	}
	s.job.State = cf.JobPolling
	return store.Jobs.Update(tx, s.job)
}

// began writes that the broker does it.
func (l *Loop) began(tx *store.Tx, s *step, a answer) error {
	s.op.Phase, s.op.Operation, s.op.Attempts = cf.PhasePoll, a.operation, 0
	if err := s.task.began(tx, s, a); err != nil {
		return err
	}
	if err := s.polls(tx); err != nil {
		return err
	}
	return l.later(tx, s, 0)
}

func (l *Loop) recordPoll(tx *store.Tx, s *step, a answer) error {
	state := a.state.State
	if a.state.Gone {
		state = osb.InProgress
		if s.task.words().deletes {
			state = osb.Succeeded
		}
	}
	if _, ok := errors.AsType[fetchError](a.err); ok {
		return l.refused(tx, s, a)
	}
	switch {
	case a.err != nil:
		l.Log.Info("last operation is unknown", "job_guid", s.op.JobGUID, "err", a.err)
		return l.later(tx, s, 0)
	case state == osb.Succeeded:
		return l.succeed(tx, s, a)
	case state == osb.Failed:
		return l.fail(tx, s, unable(s.task.words().poll, a.state.Description), true)
	}
	if err := s.task.said(tx, s, a.state.Description); err != nil {
		return err
	}
	return l.later(tx, s, a.state.RetryAfter)
}

// later schedules the next request to the broker: after the broker's Retry-After, or
// with exponential back-off. An operation that takes too long fails.
func (l *Loop) later(tx *store.Tx, s *step, retryAfter time.Duration) error {
	wait := min(l.FirstPoll<<min(s.op.Attempts, 20), l.LongestPoll)
	if retryAfter > 0 {
		wait = min(retryAfter, longestRetry)
	}
	s.op.Attempts++
	s.op.DueAt = tx.Now.Add(wait)
	if s.op.Orphan != nil {
		return l.untilAbandoned(tx, s, errors.New("the service broker has not ended its deletion"))
	}
	if s.op.DueAt.After(s.op.CreatedAt.Add(l.longestRun(s))) {
		return l.fail(tx, s, timedOut(s.task.words().timeout), true)
	}
	return store.BrokerOperations.Update(tx, s.op)
}

// longestRun is how long an operation may take: the plan may say less than the
// platform.
func (l *Loop) longestRun(s *step) time.Duration {
	if s.plan != nil && s.plan.MaximumPollingDuration != nil {
		return min(time.Duration(*s.plan.MaximumPollingDuration)*time.Second, l.LongestRun)
	}
	return l.LongestRun
}

// succeed ends an operation that the broker did. What the platform then finds
// wrong with it makes it fail.
func (l *Loop) succeed(tx *store.Tx, s *step, a answer) error {
	err := s.task.succeeded(tx, s, a)
	if f, ok := asFault(err); ok {
		return l.fail(tx, s, f, true)
	}
	if err != nil {
		return err
	}
	return l.end(tx, s, nil)
}

// fail ends an operation that the broker did not do; unsure, if it may have
// done it nevertheless.
func (l *Loop) fail(tx *store.Tx, s *step, f fault, unsure bool) error {
	if s.op.Orphan != nil {
		return l.retryOrphan(tx, s, f)
	}
	if unsure && s.task.words().creates {
		if err := addOrphan(tx, s); err != nil {
			return err
		}
	}
	if err := s.task.failed(tx, s, f); err != nil {
		return err
	}
	return l.end(tx, s, &f)
}

// end ends job and operation; f is nil when all went well.
func (l *Loop) end(tx *store.Tx, s *step, f *fault) error {
	if s.job == nil {
		return store.BrokerOperations.Delete(tx, s.op.GUID)
	}
	s.job.State = cf.JobComplete
	if f != nil {
		s.job.State, s.job.Errors, s.job.Warnings = cf.JobFailed, []cf.JobError{f.shown}, nil
		l.Log.Info("broker operation failed", "operation", s.job.Operation, "resource_guid", s.job.ResourceGUID, "title", f.shown.Title)
	}
	s.job.Input = "" // what it held is done with
	if err := store.Jobs.Update(tx, s.job); err != nil {
		return err
	}
	return store.BrokerOperations.Delete(tx, s.op.GUID)
}
