package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"cupola/runtime/guid"
	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// effect is a call of a cell, or another action after the commit.
type effect func(context.Context, Cell)

// cellEffect is an effect and its cell's ID; "" for none.
type cellEffect struct {
	cellID string
	effect effect
}

// commit writes the actions in one transaction and returns the
// effects on cells. It skips an action whose row has changed since the plan read
// it, and a Stop of an instance that is desired again: the change wakes the loop.
func (l *Loop) commit(tx *store.Tx, actions []Action) ([]cellEffect, error) {
	var list []cellEffect
	for _, a := range l.amendToNow(actions, tx.Now) {
		cellID, e, err := l.apply(tx, a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a, err)
		}
		if e != nil {
			list = append(list, cellEffect{cellID, e})
		}
	}
	return list, nil
}

// amendToNow makes the Amends from the containers as they are now, and leaves out
// those that nothing is left of. The plan may have seen a container before an
// event changed its row, and would take that event back. A container changes
// before its event is sent, and no event is written while the caller writes: so
// no container is older than its row here.
func (l *Loop) amendToNow(actions []Action, now time.Time) []Action {
	if !slices.ContainsFunc(actions, func(a Action) bool { return a.Op == Amend }) {
		return actions
	}
	containers := map[string]lrp.ContainerStatus{}
	for _, cell := range l.look() {
		for _, c := range cell.Containers {
			containers[c.GUID] = c
		}
	}
	var current []Action
	for _, a := range actions {
		if a.Op == Amend {
			c := containers[a.Actual.InstanceGUID]
			if a.Next = amended(&a.Actual, &c, now); a.Next == nil {
				continue
			}
		}
		current = append(current, a)
	}
	return current
}

func (l *Loop) apply(tx *store.Tx, a Action) (cellID string, e effect, err error) {
	switch a.Op {
	case Start:
		return l.start(tx, a)
	case StartTask:
		return l.startTask(tx, a)
	case Stop:
		return stopInstance(tx, a)
	case Refresh:
		return a.CellID, l.refresh(a), nil
	case Retag:
		return a.CellID, l.retag(a), nil
	case Halt:
		return a.CellID, stop(a.Container), nil
	case CreateTask, RejectTask, Requeue, FailTask, ReuseTask, DropTask:
		lines, err := l.applyTask(tx, a)
		return "", l.say(lines), err
	}
	return "", nil, applyActual(tx, a)
}

// refresh gives an instance its new files. When that fails, the cell keeps the old
// ones, and the next plan tries again.
func (l *Loop) refresh(a Action) effect {
	return func(ctx context.Context, c Cell) {
		files := a.Run.AllFiles()
		err := c.SetFiles(a.Actual.InstanceGUID, files)
		if err != nil {
			l.log.Warn("files of an instance not replaced", "instance_guid", a.Actual.InstanceGUID, "err", err)
			return
		}
		err = l.store.Write(ctx, func(tx *store.Tx) error { return recordRefreshed(tx, a, lrp.FilesDigest(files)) })
		if err != nil && ctx.Err() == nil {
			l.log.Error("event of an instance's new files not written", "instance_guid", a.Actual.InstanceGUID, "err", err)
		}
	}
}

// retag gives the lines of an instance new tags. When that fails, the next plan
// tries again.
func (l *Loop) retag(a Action) effect {
	return func(_ context.Context, c Cell) {
		if err := c.SetLogTags(a.Actual.InstanceGUID, instanceTags(a.Run.Log.Tags, a.Actual.InstanceGUID, a.Actual.Index)); err != nil {
			l.log.Warn("tags of an instance's log not replaced", "instance_guid", a.Actual.InstanceGUID, "err", err)
		}
	}
}

// stopInstance stops an instance, unless it is desired again by now: a deployment that is
// canceled meanwhile counts on running instances.
func stopInstance(tx *store.Tx, a Action) (string, effect, error) {
	if again, err := wantedAgain(tx, a); again || err != nil {
		return "", nil, err
	}
	next := a.Actual
	next.Stopping, next.Ready = true, false
	ok, err := store.ActualLRPs.Swap(tx, a.Actual, next)
	if !ok || err != nil {
		return "", nil, err
	}
	if a.Moves {
		err = recordRescheduling(tx, a.Actual)
	}
	return a.Actual.CellID, stop(a.Actual.InstanceGUID), err
}

func stop(guid string) effect { return func(_ context.Context, c Cell) { c.Stop(guid) } }

// applyActual applies actions that only change an actual LRP's row.
func applyActual(tx *store.Tx, a Action) error {
	next := a.Actual
	switch a.Op {
	case Create:
		if ok, err := stillWanted(tx, a.Actual); !ok {
			return err
		}
		err := store.ActualLRPs.Insert(tx, a.Actual)
		if store.IsTaken(err) {
			return nil
		}
		return err
	case Remove:
		_, err := store.ActualLRPs.Delete(tx, a.Actual)
		return err
	case Unclaim:
		next = unclaimed(a.Actual, tx.Now)
	case Deny:
		next.PlacementError = lrp.Truncate(a.Reason)
		if err := recordUnplaced(tx, next); err != nil {
			return err
		}
	case Amend:
		next = *a.Next
	}
	ok, err := store.ActualLRPs.Swap(tx, a.Actual, next)
	if ok && err == nil && a.Op == Amend {
		_, err = recordReadiness(tx, a.Actual, next)
	}
	return err
}

// start claims the row for a new instance.
func (l *Loop) start(tx *store.Tx, a Action) (string, effect, error) {
	c := a.container()
	c.GUID = guid.Instance()
	c.Log.Tags = instanceTags(c.Log.Tags, c.GUID, c.Index)
	next := a.Actual
	next.State, next.InstanceGUID, next.CellID, next.Since = lrp.Claimed, c.GUID, a.CellID, tx.Now
	next.PlacementError, next.Ports = "", c.Ports
	ok, err := store.ActualLRPs.Swap(tx, a.Actual, next)
	if !ok {
		return "", nil, err
	}
	return a.CellID, func(_ context.Context, cell Cell) { cell.Start(c) }, err
}

// Cloud Controller lets Diego fill in these tags.
const (
	tagInstanceGUID = "process_instance_id"
	tagIndex        = "instance_id"
)

// instanceTags are the tags of an instance's logs: those of its Desired, and
// the two that Diego fills in.
func instanceTags(desired map[string]string, guid string, index int) map[string]string {
	tags := maps.Clone(desired)
	if tags == nil {
		tags = map[string]string{}
	}
	tags[tagInstanceGUID], tags[tagIndex] = guid, strconv.Itoa(index)
	return tags
}

// taggedLike reports whether an instance has the tags of its Desired.
func taggedLike(have, desired map[string]string) bool {
	n := len(have)
	for _, filled := range []string{tagInstanceGUID, tagIndex} {
		if _, ok := have[filled]; ok {
			n--
		}
	}
	for name, value := range desired {
		if name == tagInstanceGUID || name == tagIndex {
			continue
		}
		if got, ok := have[name]; !ok || got != value {
			return false
		}
		n--
	}
	return n == 0
}

func (l *Loop) startTask(tx *store.Tx, a Action) (string, effect, error) {
	next := *a.Task
	next.State, next.CellID = lrp.TaskRunning, a.CellID
	ok, err := store.LRPTasks.Swap(tx, *a.Task, next)
	if !ok {
		return "", nil, err
	}
	if err := begun(tx, next, a.Inputs); err != nil {
		return "", nil, err
	}
	return a.CellID, func(_ context.Context, cell Cell) { cell.Start(a.container()) }, nil
}

// begun records in a task's owner that it runs, and in a build what it is staged from.
func begun(tx *store.Tx, task lrp.Task, inputs string) error {
	switch {
	case task.Domain == lrp.DomainStaging:
		return noteInputs(tx, task.GUID, inputs)
	case task.Domain != lrp.DomainTasks:
		return changeBBSTask(tx, task, func(t *store.BBSTask) { t.State, t.CellID = lrp.TaskRunning, task.CellID })
	}
	t, err := store.Tasks.Get(tx, task.GUID)
	if err != nil || t.State != cf.TaskPending && t.FailureReason == "" {
		return err
	}
	t.FailureReason = "" // why it waited
	if t.State == cf.TaskPending {
		t.State = cf.TaskRunning
	}
	return store.Tasks.Update(tx, t)
}

// say is the effect of lines in apps' logs, nil of none. It is of no cell.
func (l *Loop) say(lines []lrp.LogLine) effect {
	if len(lines) == 0 {
		return nil
	}
	return func(context.Context, Cell) {
		for _, line := range lines {
			l.logs(line)
		}
	}
}

// applyTask applies actions on a task's row and its owner. It returns lines for
// the owner's log.
func (l *Loop) applyTask(tx *store.Tx, a Action) ([]lrp.LogLine, error) {
	switch a.Op {
	case CreateTask:
		err := store.LRPTasks.Insert(tx, *a.Task)
		if store.IsTaken(err) {
			return nil, nil
		}
		return nil, err
	case DropTask:
		_, err := store.LRPTasks.Delete(tx, *a.Task)
		return nil, err
	case FailTask:
		ok, err := store.LRPTasks.Delete(tx, *a.Task)
		if !ok {
			return nil, err
		}
		return l.recordOutcome(tx, *a.Task, outcome{failed: true, reason: a.Reason, fault: a.Fault, lost: a.Reason == reasonLost})
	}
	if a.Op == ReuseTask {
		return l.reuse(tx, a)
	}
	next := *a.Task
	next.State, next.CellID = lrp.TaskPending, ""
	next.Rejections++
	next.RejectionReason = a.Reason
	ok, err := store.LRPTasks.Swap(tx, *a.Task, next)
	if ok && err == nil && a.Op == RejectTask && a.Task.Domain == lrp.DomainTasks {
		return nil, recordWaiting(tx, a.Task.GUID, next.RejectionReason)
	}
	if !ok || lrp.Derived(a.Task.Domain) {
		return nil, err
	}
	return nil, changeBBSTask(tx, *a.Task, func(t *store.BBSTask) { t.Rejections, t.RejectionReason = next.Rejections, lrp.Truncate(a.Reason) })
}
