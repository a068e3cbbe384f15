package simulate

import (
	"testing"

	"cupola/server/reconcile"
)

// BenchmarkFirstPlan places a fleet of 250,000 instances on 1,000 empty cells.
func BenchmarkFirstPlan(b *testing.B) {
	f := newFleet(Config{Cells: 1000, Instances: 250_000, Seed: 1})
	f.happen(Step{Verb: "start"})
	b.ReportAllocs()
	for b.Loop() {
		reconcile.Plan(f.world)
	}
}
