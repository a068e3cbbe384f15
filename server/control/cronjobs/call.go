package cronjobs

import (
	"context"
	"fmt"
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

// lookAtCall finds what there is to do for the run of a call. A run that began before this
// daemon did was made by another one, and is not repeated: nobody knows how it was answered.
func (l *Loop) lookAtCall(r *round, x *cf.JobExecution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, made := l.requests[x.GUID]
	switch {
	case made && a == nil:
	case made || x.StartedAt.Before(l.since):
		r.settled = append(r.settled, x.GUID)
	default:
		r.calls = append(r.calls, x.GUID)
	}
}

// request makes the request of a run beside other work. It is made once, whatever becomes of
// the daemon.
func (l *Loop) request(ctx context.Context, guid string) error {
	var call *cf.AppJob
	var app *cf.App
	err := l.Store.Read(ctx, func(tx *store.Tx) error {
		x, err := store.JobExecutions.Get(tx, guid)
		if err != nil {
			return err
		}
		if call, err = store.AppJobs.Get(tx, x.JobGUID); err != nil {
			return err
		}
		app, err = store.Apps.Get(tx, call.AppGUID)
		return err
	})
	if err != nil {
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

// ask makes a request and writes how it was answered. If that cannot be written, a later
// round does.
func (l *Loop) ask(ctx context.Context, guid, spaceGUID string, call *cf.AppJob) {
	a := &answer{cf.ExecutionFailed, "the request broke off"} // if it panics
	defer func() {
		l.setAnswer(guid, a)
		if ctx.Err() != nil {
			return
		}
		if err := l.settle(ctx, guid); err != nil {
			l.Log.ErrorContext(ctx, "the end of a call was not written: it will be", "execution", guid, "err", err)
		}
	}()
	timeout := time.Duration(call.Timeout) * time.Second
	within, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("canceled after its timeout of %s", timeout))
	defer cancel()
	said, err := l.Call(within, spaceGUID, call)
	switch {
	case err == nil:
		a = &answer{cf.ExecutionSucceeded, said}
	case within.Err() != nil:
		a = &answer{cf.ExecutionFailed, context.Cause(within).Error()}
	default:
		a = &answer{cf.ExecutionFailed, err.Error()}
	}
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

// settleCall notes how the request of a run was answered.
func (l *Loop) settleCall(c *control.Session, app *cf.App, j *cf.AppJob, x *cf.JobExecution) error {
	l.mu.Lock()
	a, made := l.requests[x.GUID]
	l.mu.Unlock()
	switch {
	case !made:
		a = &answer{cf.ExecutionFailed, "cupola ended while the request was made. It is not made again"}
	case a == nil:
		return nil
	}
	return ended(c, app, j, x, a.state, a.message)
}
