package reconcile

import (
	"cmp"
	"slices"
	"strings"

	"cupola/runtime/lrp"
)

// placement is an instance or a task that wants a cell.
type placement struct {
	actual    lrp.Actual
	task      lrp.Task
	container lrp.Container // without GUID for an instance
}

// rank is Diego's order of auction: every first instance, then tasks, then
// further instances.
func (c placement) rank() int {
	switch {
	case c.container.Kind == lrp.KindTask:
		return 1
	case c.container.Index == 0:
		return 0
	}
	return 2
}

// compare orders placements: by rank, and among equals the larger first, which
// leaves fewer holes.
func (c placement) compare(d placement) int {
	return cmp.Or(
		cmp.Compare(c.rank(), d.rank()),
		cmp.Compare(d.container.MemoryMB, c.container.MemoryMB),
		cmp.Compare(c.container.Index, d.container.Index),
		cmp.Compare(c.container.ProcessGUID, d.container.ProcessGUID),
		cmp.Compare(c.container.GUID, d.container.GUID),
	)
}

// place holds the auction.
func (p *planner) place() {
	slices.SortStableFunc(p.places, placement.compare)
	cells := p.offers()
	for _, c := range p.places {
		o, waits, reason := choose(cells, c.container)
		switch {
		case waits:
			// A container on its way out makes the room: nobody is
			// denied it, and nobody may take it meanwhile.
			o.take(c.container)
		case o != nil:
			o.take(c.container)
			op := Start
			if c.container.Kind == lrp.KindTask {
				op = StartTask
			}
			p.do(Action{Op: op, Actual: c.actual, Task: c.task, Container: c.container, CellID: o.cell.ID})
		case c.container.Kind == lrp.KindTask:
			p.unplaced(c.task, reason)
		case c.actual.PlacementError != reason:
			p.do(Action{Op: Deny, Actual: c.actual, Reason: reason})
		}
	}
}

// resources are what a cell has and a container needs.
type resources struct{ memory, disk, containers int }

func (r resources) plus(s resources) resources {
	return resources{r.memory + s.memory, r.disk + s.disk, r.containers + s.containers}
}

func (r resources) minus(s resources) resources {
	return resources{r.memory - s.memory, r.disk - s.disk, r.containers - s.containers}
}

// lacks names what of need is more than r, in Diego's words and order.
func (r resources) lacks(need resources) []string {
	var names []string
	if need.containers > r.containers {
		names = append(names, "containers")
	}
	if need.disk > r.disk {
		names = append(names, "disk")
	}
	if need.memory > r.memory {
		names = append(names, "memory")
	}
	return names
}

// offer is a cell during an auction.
type offer struct {
	cell      lrp.Cell
	free      resources // while what is on its way out is still there
	leaving   resources // what is on its way out
	starting  int
	tasks     int
	instances map[string]int // of each process GUID
}

// offers are the cells with what this plan leaves on them.
func (p *planner) offers() []*offer {
	var offers []*offer
	for _, c := range p.w.Cells {
		o := &offer{cell: c.Cell, free: resources{c.MemoryMB, c.DiskMB, c.Cell.Containers}, instances: map[string]int{}}
		for _, s := range c.Containers {
			o.hold(s, p.ends[s.GUID] || leaving(s.Phase))
		}
		offers = append(offers, o)
	}
	return offers
}

// hold counts a container that the cell has.
func (o *offer) hold(s lrp.ContainerStatus, leaves bool) {
	r := resources{s.MemoryMB, s.DiskMB, 1}
	o.free = o.free.minus(r)
	if leaves {
		o.leaving = o.leaving.plus(r)
	}
	if s.Phase == lrp.PhaseCreating || s.Phase == lrp.PhaseStarting {
		o.starting++
	}
	o.count(s.Kind, s.ProcessGUID)
}

// take counts a container that the cell is given.
func (o *offer) take(c lrp.Container) {
	o.free = o.free.minus(need(c))
	o.starting++
	o.count(c.Kind, c.ProcessGUID)
}

func (o *offer) count(k lrp.Kind, processGUID string) {
	if k == lrp.KindTask {
		o.tasks++
		return
	}
	o.instances[processGUID]++
}

func need(c lrp.Container) resources { return resources{c.MemoryMB, c.DiskMB, 1} }

// score is Diego's: the lowest wins. It spreads the instances of a process and
// the tasks, then fills the cells evenly.
func (o *offer) score(c lrp.Container) float64 {
	used := resources{o.cell.MemoryMB, o.cell.DiskMB, o.cell.Containers}.minus(o.free)
	s := fraction(used.memory, o.cell.MemoryMB) + fraction(used.disk, o.cell.DiskMB) + fraction(used.containers, o.cell.Containers)
	s = s/3 + 0.25*float64(o.starting)
	if c.Kind == lrp.KindTask {
		return s + 1000*float64(o.tasks)
	}
	return s + 1000*float64(o.instances[c.ProcessGUID])
}

func fraction(n, of int) float64 {
	if of <= 0 {
		return 1
	}
	return float64(n) / float64(of)
}

// choose gives the cell for a container. waits says that it has room only when
// what is on its way out has gone. Without a cell there is a reason, in the
// words of Diego's auctioneer.
func choose(cells []*offer, c lrp.Container) (best *offer, waits bool, reason string) {
	if len(cells) == 0 {
		return nil, false, "unable to communicate to compatible cells"
	}
	cells = slices.DeleteFunc(slices.Clone(cells), func(o *offer) bool { return !offersRootFS(o.cell, c.RootFS) })
	if len(cells) == 0 {
		return nil, false, "found no compatible cell for required rootfs"
	}
	now := slices.DeleteFunc(slices.Clone(cells), func(o *offer) bool { return o.free.lacks(need(c)) != nil })
	later := slices.DeleteFunc(slices.Clone(cells), func(o *offer) bool { return o.free.plus(o.leaving).lacks(need(c)) != nil })
	byScore := func(a, b *offer) int { return cmp.Compare(a.score(c), b.score(c)) }
	switch {
	case len(now) > 0:
		return slices.MinFunc(now, byScore), false, ""
	case len(later) > 0:
		return slices.MinFunc(later, byScore), true, ""
	}
	return nil, false, insufficient(cells, c)
}

func offersRootFS(cell lrp.Cell, rootFS string) bool {
	scheme, name, _ := strings.Cut(rootFS, ":")
	if scheme == "preloaded" {
		return slices.Contains(cell.RootFSes, name)
	}
	return slices.Contains(cell.RootFSProviders, scheme)
}

// insufficient names what every cell lacks; when each lacks something else it
// names nothing, as Diego does.
func insufficient(cells []*offer, c lrp.Container) string {
	lacks := cells[0].free.lacks(need(c))
	for _, o := range cells[1:] {
		other := o.free.lacks(need(c))
		lacks = slices.DeleteFunc(lacks, func(name string) bool { return !slices.Contains(other, name) })
	}
	if len(lacks) == 0 {
		return "insufficient resources"
	}
	return "insufficient resources: " + strings.Join(lacks, ", ")
}
