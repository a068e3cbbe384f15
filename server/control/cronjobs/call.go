package cronjobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cupola/runtime/fault"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// answer is how a request was answered.
type answer struct {
	state   cf.ExecutionState
	message string
}

// lookAtCall finds what is due for the run of a call. One that was started by an
// earlier daemon is not repeated: it is not known how it was answered.
func (l *Loop) lookAtCall(r *round, x *cf.JobExecution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, made := l.requests[x.GUID]
	switch {
	case made && a == nil:
	case made || !x.StartedAt.IsZero():
		r.ended = append(r.ended, x.GUID)
	default:
		r.calls = append(r.calls, x.GUID)
	}
}

// request makes the request of a run in the background.
func (l *Loop) request(ctx context.Context, guid string) error {
	call, app, err := l.startRequest(ctx, guid)
	if err != nil || call == nil {
		return control.IfFound(err)
	}
	l.setAnswer(guid, nil)
	l.running.Add(1)
	fault.Go("calls", func() {
		defer l.running.Done()
		l.ask(ctx, guid, app.SpaceGUID, call)
	})
	return nil
}

// startRequest writes that the request of a run starts. It is written before, and once, so that
// neither a look at older rows nor another daemon makes the request again. A run that has
// started or ended by now has no call.
func (l *Loop) startRequest(ctx context.Context, guid string) (call *cf.AppJob, app *cf.App, err error) {
	err = l.Store.Write(ctx, func(tx *store.Tx) error {
		call = nil
		x, err := store.JobExecutions.Get(tx, guid)
		if err != nil || x.State != cf.ExecutionRunning || !x.StartedAt.IsZero() {
			return err
		}
		j, err := store.AppJobs.Get(tx, x.JobGUID)
		if err != nil {
			return err
		}
		if app, err = store.Apps.Get(tx, j.AppGUID); err != nil {
			return err
		}
		call, x.StartedAt = j, tx.Now
		return store.JobExecutions.Update(tx, x)
	})
	return call, app, err
}

// ask makes a request and writes how it was answered. If that cannot be written, a later
// round does.
func (l *Loop) ask(ctx context.Context, guid, spaceGUID string, call *cf.AppJob) {
	a := &answer{cf.ExecutionFailed, "the request broke off"} // if it panics
	defer func() {
		l.setAnswer(guid, a)
		if ctx.Err() != nil {
			return
		}
		if err := l.recordEnd(ctx, guid); err != nil {
			l.Log.ErrorContext(ctx, "the end of a call was not written: it will be", "execution", guid, "err", err)
		}
	}()
	timeout := time.Duration(call.Timeout) * time.Second
	within, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("canceled after its timeout of %s", timeout))
	defer cancel()
	said, err := l.Call(within, spaceGUID, call)
	if err != nil {
		a = &answer{cf.ExecutionFailed, err.Error()}
		return
	}
	a = &answer{cf.ExecutionSucceeded, said}
}

func (l *Loop) setAnswer(guid string, a *answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests[guid] = a
}

// forget forgets how a request was answered, which is written by now.
func (l *Loop) forget(guid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests[guid] != nil {
		delete(l.requests, guid)
	}
}

// recordCallEnd notes how the request of a run was answered.
func (l *Loop) recordCallEnd(c *control.Session, app *cf.App, j *cf.AppJob, x *cf.JobExecution) error {
	l.mu.Lock()
	a, made := l.requests[x.GUID]
	l.mu.Unlock()
	switch {
	case !made:
		a = &answer{cf.ExecutionFailed, "cupola ended while the request was made. It is not made again"}
	case a == nil:
		return nil
	}
	return ended(c, app, j, x, a.state, strings.TrimPrefix(x.Message+": "+a.message, ": "))
}
