package reconcile

// coldPenalty is what a cell's score suffers for an image that it would have to
// fetch: as much as four containers that start.
const coldPenalty = 1

// maxWarm is how many cells with its image a class knows. With more, the gain
// is not worth the look at each.
const maxWarm = 32

// queues are the cells of a class: all of them, and some that have the image
// where one is pulled.
type queues struct {
	pool   *queue
	pulled bool
	warm   queue
	failed map[resources]bool // needs that no cell has room for
}

// queue is a heap of cells by their score without what is a process's own.
// Scores only grow while an auction is held, so an entry that is behind is
// found when it comes to the top.
type queue struct {
	entries []entry
	room    func(*offer) resources
	least   resources // that anything needs that the queue is asked for
	task    bool
}

type entry struct {
	score float64
	o     *offer
}

func (e entry) before(f entry) bool {
	return e.score < f.score || e.score == f.score && e.o.order < f.o.order
}

// lower records that a container needs as little as n.
func (q *queues) lower(n resources) {
	q.pool.least, q.warm.least = q.pool.least.least(n), q.warm.least.least(n)
}

// warmUp records that a cell has the image.
func (q *queues) warmUp(o *offer) {
	if len(q.warm.entries) < maxWarm {
		q.warm.push(entry{o.score(q.warm.task), o})
	}
}

// best is the cell with the lowest score that has room for n; nil if none has.
func (q *queues) best(n resources, of *spread) *offer {
	if q.failed[n] {
		return nil
	}
	best := q.pool.best(n, of)
	if q.pulled {
		best.score += coldPenalty
		if warm := q.warm.best(n, of); warm.o != nil && (best.o == nil || warm.before(best)) {
			best = warm
		}
	}
	if best.o == nil {
		q.failed[n] = true
	}
	return best.o
}

// best is the best entry; it has no o if there is none. Cells that have not even
// room for the least are dropped.
func (q *queue) best(n resources, of *spread) (best entry) {
	floor := 0.0
	if of != nil {
		floor = sameProcess * float64(of.floor)
	}
	var aside []entry
	for len(q.entries) > 0 {
		top := q.entries[0]
		if score := top.o.score(q.task); score != top.score {
			q.entries[0].score = score
			q.down(0)
			continue
		}
		if best.o != nil && !(entry{top.score + floor, top.o}).before(best) {
			break
		}
		q.pop()
		room := q.room(top.o)
		if !room.holds(q.least) {
			continue
		}
		aside = append(aside, top)
		bid := entry{top.score + sameProcess*float64(of.count(top.o)), top.o}
		if room.holds(n) && (best.o == nil || bid.before(best)) {
			best = bid
		}
	}
	for _, e := range aside {
		q.push(e)
	}
	return best
}

func (q *queue) push(e entry) {
	q.entries = append(q.entries, e)
	for i := len(q.entries) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.entries[i].before(q.entries[up]) {
			return
		}
		q.entries[i], q.entries[up] = q.entries[up], q.entries[i]
		i = up
	}
}

// pop removes the first.
func (q *queue) pop() {
	last := len(q.entries) - 1
	q.entries[0] = q.entries[last]
	q.entries = q.entries[:last]
	q.down(0)
}

func (q *queue) down(i int) {
	for {
		least := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < len(q.entries) && q.entries[child].before(q.entries[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.entries[i], q.entries[least] = q.entries[least], q.entries[i]
		i = least
	}
}
