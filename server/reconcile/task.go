package reconcile

import (
	"time"

	"cupola/runtime/lrp"
)

// Diego's rules and texts for tasks.
const (
	maxPending     = 30 * time.Minute
	rejectInterval = 30 * time.Second // between two attempts that count

	reasonCancelled = "task was cancelled"
	reasonPending   = "not started within time limit"
	reasonLost      = "cell disappeared before completion"
)

// tasks compares the rows with the work that their owners want.
func (p *planner) tasks() {
	rows := make(map[string]*lrp.Task, len(p.w.Tasks))
	work := map[string]bool{}
	for i := range p.w.Tasks {
		rows[p.w.Tasks[i].GUID] = &p.w.Tasks[i]
	}
	for i := range p.w.Work {
		w := &p.w.Work[i]
		work[w.GUID] = true
		t, ok := rows[w.GUID]
		if !ok {
			t = &lrp.Task{GUID: w.GUID, Domain: w.Domain, State: lrp.TaskPending, CreatedAt: p.w.Now, UpdatedAt: p.w.Now}
			p.do(Action{Op: CreateTask, Task: t})
		}
		p.task(t, w, ok)
	}
	for i := range p.w.Tasks {
		t := &p.w.Tasks[i]
		if n, runs := p.has[t.GUID]; runs && p.w.Kept[t.GUID] {
			p.fates[n] = wanted
		}
		if !work[t.GUID] && !p.w.Kept[t.GUID] {
			p.do(Action{Op: DropTask, Task: t})
		}
	}
}

// task plans for a row; known reports whether it was there before this plan.
func (p *planner) task(t *lrp.Task, w *Work, known bool) {
	fail := func(reason string) { p.do(Action{Op: FailTask, Task: t, CellID: t.CellID, Reason: reason}) }
	n, runs := p.has[t.GUID]
	switch {
	case w.Cancelled:
		fail(reasonCancelled)
	case w.Overdue != "":
		fail(w.Overdue)
	case t.State == lrp.TaskRunning && runs:
		p.fates[n] = wanted
	case t.State == lrp.TaskRunning && p.unreachable[t.CellID]:
	case t.State == lrp.TaskRunning && repeatable(t):
		p.do(Action{Op: Requeue, Task: t, Reason: reasonLost})
	case t.State == lrp.TaskRunning, w.Begun && !known:
		fail(reasonLost)
	case w.Fault != "":
		p.do(Action{Op: FailTask, Task: t, Fault: w.Fault})
	case w.Reuse != "":
		p.do(Action{Op: ReuseTask, Task: t, Inputs: w.Inputs, Reuse: w.Reuse})
	case p.w.Now.Sub(t.CreatedAt) >= maxPending:
		fail(reasonPending)
	case !w.Waits:
		p.places = append(p.places, &placement{task: t, run: &w.Run, inputs: w.Inputs})
	}
}

// repeatable reports whether a task that was lost with its cell may run again. A
// staging has no effects outside of its container, an app's task may have some.
func repeatable(t *lrp.Task) bool {
	return t.Domain == lrp.DomainStaging && t.Rejections < lrp.MaxTaskRejections
}

// unplaced rejects a task that found no cell, as Diego does, and fails it after too
// many rejections.
func (p *planner) unplaced(t *lrp.Task, reason string) {
	switch {
	case t.Rejections > 0 && p.w.Now.Sub(t.UpdatedAt) < rejectInterval:
	case t.Rejections >= lrp.MaxTaskRejections:
		p.do(Action{Op: FailTask, Task: t, Reason: reason})
	default:
		p.do(Action{Op: RejectTask, Task: t, Reason: reason})
	}
}
