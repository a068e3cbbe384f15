package reconcile

import (
	"cmp"
	"slices"
	"time"

	"cupola/runtime/lrp"
)

// Plan returns what to do now, in order. It reads w alone: no clock, no store,
// no cell.
func Plan(w World) []Action {
	p := &planner{w: &w, changing: map[string]bool{}, unreachable: map[string]bool{}}
	p.look()
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
	w           *World
	actions     []Action
	has         map[string]int         // containers by GUID: their place in held and fates
	held        []*lrp.ContainerStatus // all containers, cell by cell
	on          []int                  // the cell of each
	fates       []fate                 // what becomes of each
	places      []*placement           // what wants a cell
	evacuating  []*placement           // instances on evacuating cells
	unreachable map[string]bool        // cells of which it is not known what they have
	changing    map[string]bool        // processes with an instance that starts or stops
}

// fate is what becomes of a container.
type fate uint8

const (
	unknown fate = iota // nothing wants it
	wanted              // it goes on
	ends                // an action ends it
)

// look lists the containers.
func (p *planner) look() {
	n := 0
	for i := range p.w.Cells {
		n += len(p.w.Cells[i].Containers)
		if c := &p.w.Cells[i]; c.Unreachable {
			p.unreachable[c.ID] = true
		}
	}
	p.has, p.fates = make(map[string]int, n), make([]fate, n)
	p.held, p.on = make([]*lrp.ContainerStatus, 0, n), make([]int, 0, n)
	for i := range p.w.Cells {
		list := p.w.Cells[i].Containers
		for j := range list {
			p.has[list[j].GUID] = len(p.held)
			p.held, p.on = append(p.held, &list[j]), append(p.on, i)
		}
	}
}

func (p *planner) do(a Action) {
	p.actions = append(p.actions, a)
	guid := a.Actual.InstanceGUID
	switch a.Op {
	case Halt:
		guid = a.Container
	case Stop:
	default:
		return
	}
	if n, ok := p.has[guid]; ok {
		p.fates[n] = ends
	}
}

// desiredRows is a Desired with the indices that have a row.
type desiredRows struct {
	*lrp.Desired
	rows   []bool
	digest *string // of its files; nil until it was asked for
}

func (w *desiredRows) filesDigest() string {
	if w.digest == nil {
		d := lrp.FilesDigest(w.AllFiles())
		w.digest = &d
	}
	return *w.digest
}

// instances compares the rows with what is desired.
func (p *planner) instances() {
	desired, missing := make(map[string]*desiredRows, len(p.w.Desired)), -len(p.w.Actuals)
	for i := range p.w.Desired {
		d := &p.w.Desired[i]
		w := &desiredRows{Desired: d, rows: make([]bool, max(min(d.Instances, maxInstances), 0))}
		desired[d.ProcessGUID] = w
		missing += len(w.rows)
	}
	for i := range p.w.Actuals {
		a := &p.w.Actuals[i]
		d := desired[a.ProcessGUID]
		ok := d != nil && a.Index >= 0 && a.Index < d.Instances
		if ok && a.Index < len(d.rows) {
			d.rows[a.Index] = true
		}
		p.instance(a, d, ok)
	}
	if missing > 0 { // each is made and started
		p.actions, p.places = slices.Grow(p.actions, 2*missing), slices.Grow(p.places, missing)
	}
	for i := range p.w.Desired {
		d := desired[p.w.Desired[i].ProcessGUID]
		for index, there := range d.rows {
			if there {
				continue
			}
			d.rows[index] = true
			key := lrp.Key{ProcessGUID: d.ProcessGUID, Index: index}
			a := lrp.Actual{Key: key, Domain: d.Domain, Owner: d.Owner, State: lrp.Unclaimed, Since: p.w.Now}
			p.do(Action{Op: Create, Actual: a})
			p.offer(a, d.Desired)
		}
	}
}

func (p *planner) instance(a *lrp.Actual, d *desiredRows, wants bool) {
	if a.State == lrp.Unclaimed || a.State == lrp.Crashed {
		p.idle(*a, d, wants)
		return
	}
	n, ok := p.has[a.InstanceGUID]
	switch {
	case !ok && p.unreachable[a.CellID]:
		p.changing[a.ProcessGUID] = true
	case !ok && (a.Stopping || !wants):
		p.do(Action{Op: Remove, Actual: *a})
	case !ok:
		p.do(Action{Op: Unclaim, Actual: *a})
		p.offer(unclaimed(*a, p.w.Now), d.Desired)
	case a.Stopping: // orphans stops its container
		p.changing[a.ProcessGUID] = true
	case !wants && (p.w.Stale[a.Domain] || p.w.Kept[a.ProcessGUID]):
		p.fates[n] = wanted
	case !wants:
		p.do(Action{Op: Stop, Actual: *a})
	default:
		p.fates[n] = wanted
		p.keep(a, n, d)
	}
}

// keep updates an instance that goes on.
func (p *planner) keep(a *lrp.Actual, n int, d *desiredRows) {
	c := p.held[n]
	if (c.Phase == lrp.PhaseStarting || c.Phase == lrp.PhaseRunning) && c.FilesDigest != "" {
		if want := d.filesDigest(); want != "" && want != c.FilesDigest {
			p.do(Action{Op: Refresh, Actual: *a, Run: &d.RunInfo, CellID: c.CellID})
		}
	}
	if c.Phase == lrp.PhaseRunning && !taggedLike(c.LogTags, d.Log.Tags) {
		p.do(Action{Op: Retag, Actual: *a, Run: &d.RunInfo, CellID: a.CellID})
	}
	next := amended(a, c, p.w.Now)
	if next != nil {
		p.do(Action{Op: Amend, Actual: *a, Next: next})
	}
	switch {
	case a.State == lrp.Claimed:
		p.changing[a.ProcessGUID] = true
	case next == nil && p.w.Cells[p.on[n]].Leaving:
		p.evacuating = append(p.evacuating, wanting(*a, d.Desired))
	}
}

// idle deals with a row that has no container.
func (p *planner) idle(a lrp.Actual, d *desiredRows, wants bool) {
	if !wants || a.Stopping {
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
	p.offer(a, d.Desired)
}

// amended returns the row that matches the container; nil if it matches already. A
// container that is ending sends an event itself.
func amended(a *lrp.Actual, c *lrp.ContainerStatus, now time.Time) *lrp.Actual {
	if c.Phase != lrp.PhaseRunning || a.State == lrp.Running && a.Address == c.Address && a.TLSPorts == c.TLSPorts && a.Ready == c.Ready && a.Role == c.Role {
		return nil
	}
	next := *a
	if a.State != lrp.Running {
		next.State, next.Since = lrp.Running, now
	}
	next.Address, next.TLSPorts, next.Ready, next.Role = c.Address, c.TLSPorts, c.Ready, c.Role
	return &next
}

// offer enters an instance in the auction.
func (p *planner) offer(a lrp.Actual, d *lrp.Desired) {
	if d.Unmonitored {
		return
	}
	p.changing[a.ProcessGUID] = true
	if !p.w.Waits[a.ProcessGUID] {
		p.places = append(p.places, wanting(a, d))
	}
}

// wanting returns the placement of an instance.
func wanting(a lrp.Actual, d *lrp.Desired) *placement {
	return &placement{actual: a, run: &d.RunInfo}
}

// orphans stops containers without a row.
func (p *planner) orphans() {
	for n, c := range p.held {
		if p.fates[n] == unknown && !leaving(c.Phase) {
			p.do(Action{Op: Halt, CellID: p.w.Cells[p.on[n]].ID, Container: c.GUID})
		}
	}
}

func leaving(p lrp.Phase) bool { return p == lrp.PhaseStopping || p == lrp.PhaseExited }

// wake returns when a Plan of the same world may have new actions; the zero time means
// never.
func wake(w World) time.Time {
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
