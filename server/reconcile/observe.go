package reconcile

import (
	"time"

	"cupola/runtime/lrp"
)

// Look is what one look of the loop saw, before it acted, and what it decided.
type Look struct {
	Took                                 time.Duration
	Desired, Missing, Extra              int // instances
	Unclaimed, Claimed, Running, Crashed int // instances by state
	Crashing                             int // Desireds of which an instance is crashed
	TasksPending, TasksRunning           int
	TasksCompleted                       int
	Placed, Denied                       int // instances by the auction
	TasksPlaced, TasksDenied, Stagings   int // Stagings are among TasksPlaced
}

// observe reports what a look saw and decided.
func (l *Loop) observe(w World, actions []Action, began time.Time) {
	if l.observer == nil {
		return
	}
	look := Look{Took: time.Since(began)}
	look.countInstances(w)
	look.countTasks(w.Tasks)
	for _, a := range actions {
		look.countAction(a)
	}
	l.observer(look)
}

func (k *Look) countInstances(w World) {
	desired, found, crashing := make(map[string]int, len(w.Desired)), 0, map[string]bool{}
	for _, d := range w.Desired {
		desired[d.ProcessGUID] = d.Instances
		k.Desired += d.Instances
	}
	states := map[lrp.ActualState]*int{lrp.Unclaimed: &k.Unclaimed, lrp.Claimed: &k.Claimed, lrp.Running: &k.Running, lrp.Crashed: &k.Crashed}
	for _, a := range w.Actuals {
		if n := states[a.State]; n != nil {
			*n++
		}
		if a.State == lrp.Crashed {
			crashing[a.ProcessGUID] = true
		}
		if a.Index < desired[a.ProcessGUID] {
			found++
		} else {
			k.Extra++
		}
	}
	k.Missing, k.Crashing = max(k.Desired-found, 0), len(crashing)
}

func (k *Look) countTasks(tasks []lrp.Task) {
	for _, t := range tasks {
		switch t.State {
		case lrp.TaskPending:
			k.TasksPending++
		case lrp.TaskRunning:
			k.TasksRunning++
		default:
			k.TasksCompleted++
		}
	}
}

func (k *Look) countAction(a Action) {
	switch a.Op {
	case Start:
		k.Placed++
	case Deny:
		k.Denied++
	case StartTask:
		k.TasksPlaced++
		if a.Task.Domain == lrp.DomainStaging {
			k.Stagings++
		}
	case RejectTask:
		k.TasksDenied++
	}
}
