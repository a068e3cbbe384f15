package reconcile

import (
	"fmt"
	"strconv"

	"cupola/runtime/lrp"
)

// Op is what an Action does.
type Op string

// The actions. Those on a row change it only if it still equals the Action's.
const (
	Create  Op = "create"  // a row for a missing instance
	Remove  Op = "remove"  // the row of an instance that is gone, or was never placed
	Unclaim Op = "unclaim" // of an instance, to place it again
	Deny    Op = "deny"    // say why an instance is not placed
	Start   Op = "start"   // an instance on a cell
	Stop    Op = "stop"    // an instance
	Amend   Op = "amend"   // update a row from its container: an event was lost
	Halt    Op = "halt"    // stop a container without a row
	Refresh Op = "refresh" // the files of an instance that runs
	Retag   Op = "retag"   // the lines of an instance that runs

	CreateTask Op = "create-task" // a row for an owner's work
	StartTask  Op = "start-task"
	RejectTask Op = "reject-task" // it was not placed; it will be tried again
	Requeue    Op = "requeue-task"
	FailTask   Op = "fail-task"  // and record it in its owner
	ReuseTask  Op = "reuse-task" // a build takes an earlier droplet, and nothing runs
	DropTask   Op = "drop-task"  // its owner is gone
)

// Action is one decision. Op determines which fields are used.
type Action struct {
	Op        Op
	Actual    lrp.Actual   // the row as it was seen, or made by an earlier Action of the plan
	Next      *lrp.Actual  // Amend
	Task      *lrp.Task    // like Actual
	Inputs    string       // StartTask, ReuseTask: of a build
	Reuse     string       // ReuseTask: the droplet's GUID
	Run       *lrp.RunInfo // Start, StartTask, Refresh, Retag: what to run, of the World
	Container string       // Halt: its GUID
	Moves     bool         // Stop: it is desired, and will run on another cell
	CellID    string
	Reason    string // Deny, RejectTask, Requeue, FailTask: in Diego's words
	Fault     string // FailTask: in the owner's words, instead of Reason
}

// container returns the container that a Start or StartTask starts; that of a Start has
// no GUID yet.
func (a Action) container() lrp.Container {
	if a.Op == StartTask {
		return lrp.Container{GUID: a.Task.GUID, Kind: lrp.KindTask, Domain: a.Task.Domain, CellID: a.CellID, RunInfo: *a.Run}
	}
	c := lrp.Container{Kind: lrp.KindInstance, Domain: a.Actual.Domain, ProcessGUID: a.Actual.ProcessGUID, Index: a.Actual.Index,
		CellID: a.CellID, RunInfo: *a.Run}
	c.Log.Instance = strconv.Itoa(a.Actual.Index)
	return c
}

// String is for logs and tests.
func (a Action) String() string {
	s := string(a.Op)
	switch a.Op {
	case CreateTask, StartTask, RejectTask, Requeue, FailTask, ReuseTask, DropTask:
		s += " " + a.Task.GUID
	case Halt:
		s += " " + a.Container
	default:
		s += fmt.Sprintf(" %s/%d", a.Actual.ProcessGUID, a.Actual.Index)
	}
	if a.CellID != "" {
		s += " on " + a.CellID
	}
	if text := a.Reason + a.Fault; text != "" {
		s += ": " + text
	}
	return s
}
