package reconcile

import (
	"cmp"
	"slices"

	"cupola/runtime/lrp"
)

// placement is an instance or a task that wants a cell.
type placement struct {
	actual lrp.Actual
	task   *lrp.Task // nil for an instance
	run    *lrp.RunInfo
	inputs string // of a build
	class  *class
}

func (c *placement) stages() bool { return c.task != nil && c.task.Domain == lrp.DomainStaging }

func (c *placement) need() resources { return resources{c.run.MemoryMB, c.run.DiskMB, 1} }

// rank is Diego's order of auction: every first instance, then tasks, then
// further instances.
func (c *placement) rank() int {
	switch {
	case c.task != nil:
		return 1
	case c.actual.Index == 0:
		return 0
	}
	return 2
}

// compare orders placements: by rank, and among equals the larger first, which
// leaves fewer holes.
func (c *placement) compare(d *placement) int {
	if n := cmp.Or(cmp.Compare(c.rank(), d.rank()), cmp.Compare(d.run.MemoryMB, c.run.MemoryMB)); n != 0 {
		return n
	}
	if c.task != nil {
		return cmp.Compare(c.task.GUID, d.task.GUID)
	}
	return cmp.Or(cmp.Compare(c.actual.Index, d.actual.Index), cmp.Compare(c.actual.ProcessGUID, d.actual.ProcessGUID))
}

// place holds the auction, and then evacuates cells.
func (p *planner) place() {
	if len(p.places)+len(p.evacuating) == 0 {
		return
	}
	slices.SortFunc(p.places, (*placement).compare)
	a := newAuction(nil)
	a.cells, a.silent = p.offers()
	for _, c := range p.places {
		a.enter(c)
	}
	for _, c := range p.evacuating {
		a.enter(c)
	}
	p.spread(a)
	for _, c := range p.places {
		p.placeOne(a, c)
	}
	p.move(a)
}

func (p *planner) placeOne(a *auction, c *placement) {
	o, waits, reason := a.choose(c)
	switch {
	case waits:
		// A container that stops makes the room, which is
		// reserved meanwhile.
		a.take(o, c)
	case o != nil:
		a.take(o, c)
		op := Start
		if c.task != nil {
			op = StartTask
		}
		p.do(Action{Op: op, Actual: c.actual, Task: c.task, Run: c.run, Inputs: c.inputs, CellID: o.cell.ID})
	case c.task != nil:
		p.unplaced(c.task, reason)
	case c.actual.PlacementError != reason:
		p.do(Action{Op: Deny, Actual: c.actual, Reason: reason})
	}
}

// move stops instances on evacuating cells, each when another cell has room
// for it, and of a process one after the other, so that it goes on serving.
func (p *planner) move(a *auction) {
	for _, c := range p.evacuating {
		if p.changing[c.actual.ProcessGUID] {
			continue
		}
		if o, waits, _ := a.choose(c); o != nil && !waits {
			a.take(o, c)
			p.changing[c.actual.ProcessGUID] = true
			p.do(Action{Op: Stop, Actual: c.actual, Moves: true})
		}
	}
}

// offers are the cells that take something, with what this plan leaves on them. Those that are silent would if they answered.
func (p *planner) offers() (offers, silent []*offer) {
	n := 0
	for i := range p.w.Cells {
		c := &p.w.Cells[i]
		o := &offer{cell: c.Cell, order: i, free: resources{c.MemoryMB, c.DiskMB, c.Cell.Containers}, images: map[string]bool{}}
		for j := range c.Containers {
			s := &c.Containers[j]
			o.hold(s, p.fates[n] == ends || leaving(s.Phase))
			n++
		}
		switch {
		case c.Leaving:
		case c.Unreachable:
			silent = append(silent, o)
		default:
			offers = append(offers, o)
		}
	}
	return offers, silent
}

// spread counts the instances on each cell of the processes that are placed.
func (p *planner) spread(a *auction) {
	if len(a.processes) == 0 {
		return
	}
	for _, o := range a.cells {
		for _, s := range p.w.Cells[o.order].Containers {
			if s.Kind != lrp.KindInstance {
				continue
			}
			if of := a.processes[s.ProcessGUID]; of != nil {
				of.on[o]++
			}
		}
	}
}
