package reconcile

import (
	"cmp"
	"slices"

	"cupola/rootfs/reference"
)

// chooseZone gives an instance the best cell of the zone that has the fewest
// instances of its process; where zones have as many, the best cell of these
// decides. A zone without room is passed over. This is Diego's rule (auction,
// auctionrunner/scheduler.go: scheduleLRPAuction). It looks at every cell: a
// machine that is divided into zones has few.
func (a *auction) chooseZone(p *placement, of *spread) (best *offer, waits bool) {
	instances := map[string]int{}
	for _, o := range a.cells {
		instances[o.cell.Zone] += of.count(o)
	}
	n := p.need()
	for _, later := range []bool{false, true} {
		fit := slices.DeleteFunc(slices.Clone(p.class.cells), func(o *offer) bool {
			if later {
				return o.leaving == resources{} || !o.free.plus(o.leaving).holds(n)
			}
			return !o.free.holds(n)
		})
		if len(fit) > 0 {
			return slices.MinFunc(fit, func(x, y *offer) int {
				return cmp.Or(cmp.Compare(instances[x.cell.Zone], instances[y.cell.Zone]), cmp.Compare(a.cost(x, p, of), a.cost(y, p, of)))
			}), later
		}
	}
	return nil, false
}

// cost is the score of a cell for an instance, with what the queues add.
func (a *auction) cost(o *offer, p *placement, of *spread) float64 {
	s := o.score(false) + sameProcess*float64(of.count(o))
	if scheme, _ := reference.SplitScheme(p.run.RootFS); scheme != reference.SchemePreloaded && !o.images[p.run.RootFS] {
		s += coldPenalty
	}
	return s
}
