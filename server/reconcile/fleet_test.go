package reconcile

import (
	"fmt"
	"testing"
	"time"

	"cupola/runtime/lrp"
)

// fleet is 1,000 cells of which n instances of 5 each are placed.
func fleet(processes, placed int) World {
	w := World{Now: time.Unix(1_700_000_000, 0)}
	for i := range 1000 {
		w.Cells = append(w.Cells, CellState{Cell: lrp.Cell{ID: fmt.Sprint("cell-", i), MemoryMB: 64 << 10, DiskMB: 1 << 20, Containers: 500, RootFSes: []string{"minifs"}}})
	}
	n := 0
	for i := range processes {
		d := desired(fmt.Sprintf("process-guid-of-some-length-%d", i), 5, 64+i%7*32)
		w.Desired = append(w.Desired, d)
		for j := range d.Instances {
			if n++; n > placed {
				continue
			}
			guid := fmt.Sprintf("instance-guid-of-some-length-%d-%d", i, j)
			c := n % 1000
			a := row(d.ProcessGUID, j, lrp.Running, guid)
			a.CellID, a.Address, a.Ready = w.Cells[c].ID, "10.0.0.1", true
			w.Actuals = append(w.Actuals, a)
			s := has(guid, lrp.PhaseRunning, d.MemoryMB)
			s.ProcessGUID, s.Index, s.Address, s.Ready = d.ProcessGUID, j, "10.0.0.1", true
			w.Cells[c].Containers = append(w.Cells[c].Containers, s)
		}
	}
	return w
}

func BenchmarkPlanOfAFleet(b *testing.B) {
	const processes, all = 50_000, 250_000
	for _, c := range []struct {
		name   string
		placed int
	}{{"steady", all}, {"one cell lost", all - 250}, {"half lost", all / 2}, {"nothing placed", 0}} {
		w := fleet(processes, c.placed)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Plan(w)
			}
		})
	}
}
