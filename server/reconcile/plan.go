package reconcile

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"cupola/runtime/lrp"
)

// Plan returns what to do now, in order. It reads w alone: no clock, no store,
// no cell.
func Plan(w World) []Action {
	p := &planner{w: w, has: map[string]lrp.ContainerStatus{}, wanted: map[string]bool{}, ends: map[string]bool{}}
	for _, c := range w.Cells {
		for _, s := range c.Containers {
			p.has[s.GUID] = s
		}
	}
	p.instances()
	p.tasks()
	p.orphans()
	p.place()
	return p.actions
}

// maxInstances is how many instances of a Desired are looked at. No cell holds
// as many, but a client may ask for two billions.
const maxInstances = 5000

type planner struct {
	w       World
	actions []Action
	has     map[string]lrp.ContainerStatus // by container GUID
	wanted  map[string]bool                // containers that are to go on
	ends    map[string]bool                // containers that an action ends
	places  []placement                    // what wants a cell
}

func (p *planner) do(a Action) {
	p.actions = append(p.actions, a)
	switch a.Op {
	case Stop:
		p.ends[a.Actual.InstanceGUID] = true
	case Halt:
		p.ends[a.Container.GUID] = true
	}
}

// instances compares the rows with what is desired.
func (p *planner) instances() {
	desired := map[string]lrp.Desired{}
	for _, d := range p.w.Desired {
		desired[d.ProcessGUID] = d
	}
	rows := map[lrp.Key]bool{}
	for _, a := range p.w.Actuals {
		rows[a.Key] = true
		d, ok := desired[a.ProcessGUID]
		p.instance(a, d, ok && a.Index < d.Instances)
	}
	for _, d := range p.w.Desired {
		for i := range min(d.Instances, maxInstances) {
			key := lrp.Key{ProcessGUID: d.ProcessGUID, Index: i}
			if rows[key] {
				continue
			}
			a := lrp.Actual{Key: key, Domain: d.Domain, State: lrp.Unclaimed, Since: p.w.Now}
			p.do(Action{Op: Create, Actual: a})
			p.offer(a, d)
		}
	}
}

func (p *planner) instance(a lrp.Actual, d lrp.Desired, wanted bool) {
	if a.State == lrp.Unclaimed || a.State == lrp.Crashed {
		p.idle(a, d, wanted)
		return
	}
	c, ok := p.has[a.InstanceGUID]
	switch {
	case !ok && (a.Stopping || !wanted):
		p.do(Action{Op: Remove, Actual: a})
	case !ok:
		p.do(Action{Op: Unclaim, Actual: a})
		p.offer(unclaimed(a, p.w.Now), d)
	case a.Stopping: // a container that does not know it yet is an orphan
	case !wanted:
		p.do(Action{Op: Stop, Actual: a})
	default:
		p.wanted[c.GUID] = true
		if next := amended(a, c, p.w.Now); !same(a, next) {
			p.do(Action{Op: Amend, Actual: a, Next: next})
		}
	}
}

// idle deals with a row that has no container.
func (p *planner) idle(a lrp.Actual, d lrp.Desired, wanted bool) {
	if !wanted || a.Stopping {
		p.do(Action{Op: Remove, Actual: a})
		return
	}
	if a.State == lrp.Crashed {
		at, ever := restartAt(a)
		if !ever || at.After(p.w.Now) {
			return
		}
		p.do(Action{Op: Unclaim, Actual: a})
		a = unclaimed(a, p.w.Now)
	}
	p.offer(a, d)
}

// amended is the row as the container says it should be. One that is ending is
// about to say so itself.
func amended(a lrp.Actual, c lrp.ContainerStatus, now time.Time) lrp.Actual {
	if c.Phase != lrp.PhaseRunning {
		return a
	}
	if a.State != lrp.Running {
		a.State, a.Since = lrp.Running, now
	}
	a.Address, a.Ready = c.Address, c.Ready
	return a
}

func same(a, b lrp.Actual) bool {
	return a.State == b.State && a.Address == b.Address && a.Ready == b.Ready
}

// offer has an instance placed.
func (p *planner) offer(a lrp.Actual, d lrp.Desired) {
	c := lrp.Container{Kind: lrp.KindInstance, Domain: d.Domain, ProcessGUID: a.ProcessGUID, Index: a.Index, RunInfo: d.RunInfo}
	c.Log.Instance = strconv.Itoa(a.Index)
	p.places = append(p.places, placement{actual: a, container: c})
}

// orphans ends the containers that nothing wants.
func (p *planner) orphans() {
	for _, cell := range p.w.Cells {
		for _, c := range cell.Containers {
			if p.wanted[c.GUID] || p.ends[c.GUID] || leaving(c.Phase) {
				continue
			}
			p.do(Action{Op: Halt, CellID: cell.ID, Container: lrp.Container{GUID: c.GUID}})
		}
	}
}

func leaving(p lrp.Phase) bool { return p == lrp.PhaseStopping || p == lrp.PhaseExited }

// Wake is when a Plan of the same world may have something to do that it has
// not now; the zero time is never.
func Wake(w World) time.Time {
	var at []time.Time
	for _, a := range w.Actuals {
		if t, ever := restartAt(a); ever && a.State == lrp.Crashed {
			at = append(at, t)
		}
	}
	for _, t := range w.Tasks {
		if t.State == lrp.TaskPending {
			at = append(at, t.CreatedAt.Add(maxPending), t.UpdatedAt.Add(rejectInterval))
		}
	}
	at = slices.DeleteFunc(at, func(t time.Time) bool { return !t.After(w.Now) })
	if len(at) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(at, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
}
