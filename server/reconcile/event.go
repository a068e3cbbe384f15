package reconcile

import (
	"context"

	"cupola/runtime/lrp"
	"cupola/store"
)

// Event takes an event of a cell. It returns when the event is recorded: a cell
// keeps an exit until then, and reports it again after a crash of the daemon. It may be called before Run and after it.
func (l *Loop) Event(e lrp.Event) {
	ctx := store.As(context.Background(), "cells")
	var lines []lrp.LogLine
	err := l.store.Write(ctx, func(tx *store.Tx) (err error) {
		if e.Kind == lrp.KindTask {
			lines, err = l.taskEvent(tx, e)
			return err
		}
		lines, err = l.instanceEvent(tx, e)
		return err
	})
	if e.Type == lrp.EventExited || err != nil {
		defer l.Wake()
	}
	if err != nil {
		// A lost event is found at the next look at the cell.
		l.log.ErrorContext(ctx, "event was not written", "instance_guid", e.GUID, "event", e.Type, "err", err)
		return
	}
	for _, line := range lines {
		l.logs(line)
	}
}

// instanceEvent changes the row of the instance, if it still has one.
func (l *Loop) instanceEvent(tx *store.Tx, e lrp.Event) ([]lrp.LogLine, error) {
	row, err := store.ActualLRPs.OfInstance(tx, e.GUID)
	if err != nil {
		if store.IsNotFound(err) {
			err = nil
		}
		return nil, err
	}
	was, next := *row, *row
	switch e.Type {
	case lrp.EventRunning:
		if !was.State.CanBecome(lrp.Running) {
			return nil, nil
		}
		if was.State != lrp.Running {
			next.State, next.Since = lrp.Running, tx.Now
		}
		next.Address, next.TLSPorts = e.Address, e.TLSPorts
	case lrp.EventReady, lrp.EventNotReady:
		next.Ready = e.Type == lrp.EventReady && !was.Stopping
	case lrp.EventActive:
		next.Role = lrp.Active
	case lrp.EventPassive:
		next.Role = lrp.Passive
	case lrp.EventExited:
		return l.exited(tx, was, e.Exit)
	}
	if ok, err := store.ActualLRPs.Swap(tx, was, next); err != nil || !ok {
		return nil, err
	}
	return recordReadiness(tx, was, next)
}

// exited removes the row of an instance that was stopped, and counts any other
// end as a crash.
func (l *Loop) exited(tx *store.Tx, was lrp.Actual, exit lrp.Exit) ([]lrp.LogLine, error) {
	if was.Stopping || exit.Stopped {
		_, err := store.ActualLRPs.Delete(tx, was)
		return nil, err
	}
	next := Crashed(was, exit.Reason, tx.Now)
	if _, err := store.ActualLRPs.Crash(tx, was, next); err != nil {
		return nil, err
	}
	l.log.Info("instance crashed", "process_guid", was.ProcessGUID, "index", was.Index, "instance_guid", was.InstanceGUID,
		"crash_count", next.CrashCount, "reason", next.CrashReason)
	lines, err := recordCrash(tx, was, next)
	if store.IsNotFound(err) {
		return nil, nil
	}
	return lines, err
}

// taskEvent records the outcome of a task that has ended.
func (l *Loop) taskEvent(tx *store.Tx, e lrp.Event) ([]lrp.LogLine, error) {
	if e.Type != lrp.EventExited {
		return nil, nil
	}
	t, err := store.LRPTasks.Get(tx, e.GUID)
	if err != nil || t.State != lrp.TaskRunning {
		if store.IsNotFound(err) {
			err = nil
		}
		return nil, err
	}
	if _, err := store.LRPTasks.Delete(tx, *t); err != nil {
		return nil, err
	}
	o := outcome{failed: e.Exit.Failed || e.Exit.Stopped, reason: e.Exit.Reason, result: e.Result, outputs: e.Outputs, lost: e.Exit.Unknown && !e.Exit.Stopped}
	if e.Exit.Stopped && o.reason == "" {
		o.reason = reasonCancelled
	}
	return l.recordOutcome(tx, *t, o)
}
