package reconcile

import "cupola/runtime/lrp"

// resources are what a cell has and a container needs.
type resources struct{ memory, disk, containers int }

func (r resources) plus(s resources) resources {
	return resources{r.memory + s.memory, r.disk + s.disk, r.containers + s.containers}
}

func (r resources) minus(s resources) resources {
	return resources{r.memory - s.memory, r.disk - s.disk, r.containers - s.containers}
}

// least is the smaller of each.
func (r resources) least(s resources) resources {
	return resources{min(r.memory, s.memory), min(r.disk, s.disk), min(r.containers, s.containers)}
}

// holds reports whether need fits into r.
func (r resources) holds(need resources) bool {
	return need.memory <= r.memory && need.disk <= r.disk && need.containers <= r.containers
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
	cell     lrp.Cell
	order    int       // among the cells
	free     resources // while what is on its way out is still there
	leaving  resources // what is on its way out
	starting int
	tasks    int
	images   map[string]bool // root filesystems of what it has
}

// The parts of Diego's score.
const (
	sameProcess   = 1000 // an instance of the same process, or for a task any task
	startingScore = 0.25 // a container that starts
)

// hold counts a container that the cell has.
func (o *offer) hold(s *lrp.ContainerStatus, leaves bool) {
	r := resources{s.MemoryMB, s.DiskMB, 1}
	o.free = o.free.minus(r)
	if leaves {
		o.leaving = o.leaving.plus(r)
	}
	if s.Phase == lrp.PhaseCreating || s.Phase == lrp.PhaseStarting {
		o.starting++
	}
	if s.Kind == lrp.KindTask {
		o.tasks++
	}
	o.images[s.RootFS] = true
}

// take counts a container that the cell is given.
func (o *offer) take(p *placement) {
	o.free = o.free.minus(p.need())
	o.starting++
	if p.task != nil {
		o.tasks++
	}
}

// score is Diego's: the lowest wins. It spreads tasks and fills the cells
// evenly; what spreads the instances of a process is added by the queue.
func (o *offer) score(task bool) float64 {
	used := resources{o.cell.MemoryMB, o.cell.DiskMB, o.cell.Containers}.minus(o.free)
	s := fraction(used.memory, o.cell.MemoryMB) + fraction(used.disk, o.cell.DiskMB) + fraction(used.containers, o.cell.Containers)
	s = s/3 + startingScore*float64(o.starting)
	if task {
		s += sameProcess * float64(o.tasks)
	}
	return s
}

func fraction(n, of int) float64 {
	if of <= 0 {
		return 1
	}
	return float64(n) / float64(of)
}
