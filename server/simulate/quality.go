package simulate

import (
	"math"
	"slices"

	"cupola/runtime/lrp"
)

// Quality is how well a fleet is placed.
type Quality struct {
	// Memory of the cells that is given to containers, as a part of what they
	// have: the mean, the least, the most, and the standard deviation.
	MeanUsed, LeastUsed, MostUsed, Deviation float64
	Processes                                int // with more than one instance
	Together                                 int // of those, with two on one cell
	MostTogether                             int // instances of one process on one cell
}

func (f *fleet) quality() (q Quality) {
	var used []float64
	count, most := map[string]int{}, map[string]int{}
	for _, c := range f.world.Cells {
		memory, here := 0, map[string]int{}
		for _, s := range c.Containers {
			memory += s.MemoryMB
			if s.Kind == lrp.KindInstance {
				here[s.ProcessGUID]++
			}
		}
		for guid, n := range here {
			count[guid] += n
			most[guid] = max(most[guid], n)
		}
		if !c.Leaving && c.MemoryMB > 0 {
			used = append(used, float64(memory)/float64(c.MemoryMB))
		}
	}
	for guid, n := range count {
		if n > 1 {
			q.Processes++
		}
		if most[guid] > 1 {
			q.Together++
		}
		q.MostTogether = max(q.MostTogether, most[guid])
	}
	if len(used) == 0 {
		return q
	}
	q.LeastUsed, q.MostUsed = slices.Min(used), slices.Max(used)
	for _, u := range used {
		q.MeanUsed += u / float64(len(used))
	}
	for _, u := range used {
		q.Deviation += (u - q.MeanUsed) * (u - q.MeanUsed) / float64(len(used))
	}
	q.Deviation = math.Sqrt(q.Deviation)
	return q
}
