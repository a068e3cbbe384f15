package reconcile

import (
	"slices"
	"strings"

	"cupola/rootfs/reference"
	"cupola/runtime/lrp"
)

// auction gives containers their cells. It checks requirements in Diego's order: root filesystem, volume drivers, placement constraint,
// resources. Room only shrinks while an auction is held; that is what makes it
// fast with many cells.
type auction struct {
	cells     []*offer
	silent    []*offer // that do not answer now
	classes   map[classKey]*class
	processes map[string]*spread  // of those that are placed
	pulled    map[string][]*class // by the image that cells fetch for them
	pools     map[poolKey]*queue
}

// classKey is what a container needs of a cell.
type classKey struct {
	task       bool
	staging    bool
	rootFS     string
	constraint string
}

// poolKey identifies a queue. Classes share one if the same cells suit them, as
// most do.
type poolKey struct {
	task, later bool
	cells       string // a bit for each
}

// class is what the containers of one key have in common.
type class struct {
	mismatch string   // why no cell suits them; "" when cells are what suits them
	cells    []*offer // in order
	zoned    bool     // they are in several zones
	now      queues   // of cells by what is free
	later    queues   // of cells by what will be, once those on their way out are gone
	denied   map[resources]string
}

// spread counts the instances of a process on cells.
type spread struct {
	on    map[*offer]int
	of    *class // whose cells floor and at are about
	floor int    // no cell has fewer
	at    int    // how many cells have as few; 0 when that is not known
}

func newAuction(cells []*offer) *auction {
	return &auction{cells: cells, classes: map[classKey]*class{}, processes: map[string]*spread{}, pulled: map[string][]*class{}, pools: map[poolKey]*queue{}}
}

// enter adds a container to place; all are added before the first is placed.
func (a *auction) enter(p *placement) {
	c := p.run
	key := classKey{task: p.task != nil, staging: p.stages(), rootFS: c.RootFS}
	if len(c.Constraint.Require)+len(c.Constraint.Disallow)+len(c.VolumeDrivers) > 0 {
		key.constraint = strings.ToLower(strings.Join(c.Constraint.Require, "\n")+"\n\n"+strings.Join(c.Constraint.Disallow, "\n")) +
			"\n\n\n" + strings.Join(c.VolumeDrivers, "\n")
	}
	p.class = a.classes[key]
	if p.class == nil {
		p.class = a.newClass(p)
		a.classes[key] = p.class
	}
	p.class.now.lower(p.need())
	p.class.later.lower(p.need())
	if guid := p.actual.ProcessGUID; p.task == nil && a.processes[guid] == nil {
		a.processes[guid] = &spread{on: map[*offer]int{}}
	}
}

// newClass finds the cells that suit a container.
func (a *auction) newClass(p *placement) *class {
	c := p.run
	cl := &class{denied: map[resources]string{}}
	cells := a.cells
	if p.stages() {
		cells, c = a.stagers(c)
	}
	cl.cells, cl.mismatch = suitable(cells, c)
	if _, other := suitable(a.silent, c); cl.mismatch != "" && other == "" {
		cl.mismatch = noAnswer
	}
	cl.zoned = slices.ContainsFunc(cl.cells, func(o *offer) bool { return o.cell.Zone != cl.cells[0].cell.Zone })
	scheme, _ := reference.SplitScheme(c.RootFS)
	pulled := scheme != reference.SchemePreloaded
	if pulled {
		a.pulled[c.RootFS] = append(a.pulled[c.RootFS], cl)
	}
	leaving := slices.DeleteFunc(slices.Clone(cl.cells), func(o *offer) bool { return o.leaving == resources{} })
	cl.now = queues{pool: a.pool(cl.cells, p, false), pulled: pulled, failed: map[resources]bool{}}
	cl.later = queues{pool: a.pool(leaving, p, true), pulled: pulled, failed: map[resources]bool{}}
	for _, q := range []*queues{&cl.now, &cl.later} {
		q.warm = queue{room: q.pool.room, task: q.pool.task, least: p.need()}
	}
	if pulled {
		for _, o := range cl.cells {
			if o.images[c.RootFS] {
				cl.warm(o)
			}
		}
	}
	return cl
}

// pool is the queue of some cells, by what is free or, later, will be.
func (a *auction) pool(cells []*offer, p *placement, later bool) *queue {
	var bits []byte
	if n := len(cells); n > 0 {
		bits = make([]byte, cells[n-1].order/8+1)
	}
	for _, o := range cells {
		bits[o.order/8] |= 1 << (o.order % 8)
	}
	key := poolKey{task: p.task != nil, later: later, cells: string(bits)}
	if q := a.pools[key]; q != nil {
		return q
	}
	q := &queue{task: key.task, least: p.need(), room: func(o *offer) resources { return o.free }}
	if later {
		q.room = func(o *offer) resources { return o.free.plus(o.leaving) }
	}
	for _, o := range cells {
		q.push(entry{o.score(q.task), o})
	}
	a.pools[key] = q
	return q
}

// noAnswer is what Diego's auctioneer says when no cell answers that might run something.
const noAnswer = "unable to communicate to compatible cells"

// suitable are the cells that may run a container if they have room; without
// any there is a reason, in the words of Diego's auctioneer.
func suitable(cells []*offer, c *lrp.RunInfo) (found []*offer, mismatch string) {
	if len(cells) == 0 {
		return nil, noAnswer
	}
	for _, rule := range []struct {
		holds    func(lrp.Cell) bool
		mismatch string
	}{
		{func(cell lrp.Cell) bool { return offersRootFS(cell, c.RootFS) }, "found no compatible cell for required rootfs"},
		{func(cell lrp.Cell) bool { return hasAll(cell.VolumeDrivers, c.VolumeDrivers) }, "found no compatible cell with required volume drivers"},
		{func(cell lrp.Cell) bool { return cell.Suits(c.Constraint) }, "found no compatible cell" + tagText(c.Constraint)},
	} {
		found = nil
		for _, o := range cells {
			if rule.holds(o.cell) {
				found = append(found, o)
			}
		}
		if len(found) == 0 {
			return nil, rule.mismatch
		}
		cells = found
	}
	return found, ""
}

// stagers are the cells that stage, and the constraint for them. Where all cells that a constraint allows stage nothing, that is
// a cell that requires no tags: a droplet is the same wherever it is made.
func (a *auction) stagers(c *lrp.RunInfo) (cells []*offer, as *lrp.RunInfo) {
	allowed := slices.DeleteFunc(slices.Concat(a.cells, a.silent), func(o *offer) bool { return !o.cell.Suits(c.Constraint) })
	cells = slices.DeleteFunc(slices.Clone(a.cells), func(o *offer) bool { return o.cell.NoStaging })
	if len(allowed) == 0 || slices.ContainsFunc(allowed, func(o *offer) bool { return !o.cell.NoStaging }) {
		return cells, c
	}
	free := *c
	free.Constraint.Require = nil
	return cells, &free
}

// offersRootFS is the test of a cell's root filesystems: the name of a
// preloaded one, else the scheme.
func offersRootFS(cell lrp.Cell, rootFS string) bool {
	scheme, name := reference.SplitScheme(rootFS)
	if scheme == reference.SchemePreloaded {
		return slices.Contains(cell.RootFSes, name)
	}
	return slices.Contains(cell.RootFSProviders, string(scheme))
}

func hasAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(have, s) })
}

// tagText says what a constraint asks for. Diego's has only what is required.
func tagText(c lrp.Constraint) string {
	text := ""
	if len(c.Require) > 0 {
		text = " with placement " + quoted(c.Require)
	}
	if len(c.Require)+len(c.Disallow) == 0 {
		return " with no placement tags" // each requires some
	}
	if len(c.Disallow) == 0 {
		return text
	}
	if text != "" {
		text += " and"
	}
	return text + " without placement " + quoted(c.Disallow)
}

// quoted lists tags like: tags "a", "b" and "c".
func quoted(tags []string) string {
	if len(tags) == 1 {
		return `tag "` + tags[0] + `"`
	}
	return `tags "` + strings.Join(tags[:len(tags)-1], `", "`) + `" and "` + tags[len(tags)-1] + `"`
}

// choose gives the cell for a container that was entered. waits says that it
// has room only when what is on its way out has gone. Without a cell there is a
// reason, in the words of Diego's auctioneer.
func (a *auction) choose(p *placement) (best *offer, waits bool, reason string) {
	cl := p.class
	if cl.mismatch != "" {
		return nil, false, cl.mismatch
	}
	n := p.need()
	if reason, ok := cl.denied[n]; ok {
		return nil, false, reason
	}
	of := a.processes[p.actual.ProcessGUID] // nil for a task
	if of != nil && cl.zoned {
		if best, waits = a.chooseZone(p, of); best == nil {
			reason = insufficient(cl.cells, n)
		}
		return best, waits, reason
	}
	of.update(cl)
	if o := cl.now.best(n, of); o != nil {
		return o, false, ""
	}
	if o := cl.later.best(n, of); o != nil {
		return o, true, ""
	}
	cl.denied[n] = insufficient(cl.cells, n)
	return nil, false, cl.denied[n]
}

// take gives a container its cell.
func (a *auction) take(o *offer, p *placement) {
	o.take(p)
	if rootFS := p.run.RootFS; !o.images[rootFS] {
		o.images[rootFS] = true
		for _, cl := range a.pulled[rootFS] {
			cl.warm(o)
		}
	}
	if of := a.processes[p.actual.ProcessGUID]; of != nil && p.task == nil {
		of.add(o)
	}
}

// warm records that a cell has the image now.
func (cl *class) warm(o *offer) {
	if !slices.Contains(cl.cells, o) {
		return
	}
	cl.now.warmUp(o)
	if (o.leaving != resources{}) {
		cl.later.warmUp(o)
	}
}

// add counts an instance.
func (s *spread) add(o *offer) {
	s.on[o]++
	if s.at > 0 && s.on[o] == s.floor+1 {
		s.at--
	}
}

// update brings floor up to date with the cells of a class.
func (s *spread) update(cl *class) {
	if s == nil || s.at > 0 && s.of == cl {
		return
	}
	s.of, s.at = cl, 0
	for _, o := range cl.cells {
		switch n := s.on[o]; {
		case s.at == 0 || n < s.floor:
			s.floor, s.at = n, 1
		case n == s.floor:
			s.at++
		}
	}
}

// count is how many instances a cell has.
func (s *spread) count(o *offer) int {
	if s == nil {
		return 0
	}
	return s.on[o]
}

// insufficient names what every cell lacks; when each lacks something else it
// names nothing, as Diego does.
func insufficient(cells []*offer, n resources) string {
	lacks := cells[0].free.lacks(n)
	for _, o := range cells[1:] {
		other := o.free.lacks(n)
		lacks = slices.DeleteFunc(lacks, func(name string) bool { return !slices.Contains(other, name) })
	}
	if len(lacks) == 0 {
		return "insufficient resources"
	}
	return "insufficient resources: " + strings.Join(lacks, ", ")
}
