package simulate

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/reconcile"
)

// Result is what a run showed.
type Result struct {
	Steps   []Measure
	Idle    Measure // a tick with nothing to do, at the end
	Quality Quality
}

// Measure is what the ticks of a step took. A tick is a plan.
type Measure struct {
	Step       string
	Ticks      int
	Actions    int
	Longest    time.Duration // of the plans
	CPU        time.Duration // the most that a plan used of the processors, which a busy machine gives it late
	AllocBytes uint64        // the most that a plan allocated
	Running    int
	Desired    int
	Denied     int // instances without a place
}

// maxTicks bounds the ticks of a step.
const maxTicks = 1000

// Run replays a script, and calls report after each step.
func Run(ctx context.Context, c Config, script []Step, report func(Measure)) (Result, error) {
	f := newFleet(c)
	var r Result
	for _, s := range script {
		f.happen(s)
		m := Measure{Step: s.String()}
		for m.Ticks < maxTicks && ctx.Err() == nil {
			if f.tick(&m) == 0 && len(f.starting)+len(f.stopping) == 0 {
				break
			}
			f.advance()
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if err := f.check(); err != nil {
			return r, fmt.Errorf("after %q: %w", s, err)
		}
		f.count(&m)
		report(m)
		r.Steps = append(r.Steps, m)
	}
	r.Idle.Step = "idle"
	f.tick(&r.Idle)
	f.count(&r.Idle)
	r.Quality = f.quality()
	return r, nil
}

// tick plans once, and does it.
func (f *fleet) tick(m *Measure) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, used := time.Now(), cpuTime()
	actions := reconcile.Plan(f.world)
	m.Longest, m.CPU = max(m.Longest, time.Since(began)), max(m.CPU, cpuTime()-used)
	runtime.ReadMemStats(&after)
	m.AllocBytes = max(m.AllocBytes, after.TotalAlloc-before.TotalAlloc)
	m.Ticks++
	m.Actions += len(actions)
	f.apply(actions)
	return len(actions)
}

// cpuTime is what this process has used of the processors.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func (f *fleet) count(m *Measure) {
	for i := range f.world.Desired {
		m.Desired += f.world.Desired[i].Instances
	}
	for i := range f.world.Actuals {
		switch a := &f.world.Actuals[i]; {
		case a.State == lrp.Running && !a.Stopping:
			m.Running++
		case a.PlacementError != "":
			m.Denied++
		}
	}
}

// check says what no plan may do: two live instances of an index, more on a
// cell than it has room for, a container where its constraint forbids it.
func (f *fleet) check() error {
	desired := map[string]*lrp.Desired{}
	for i := range f.world.Desired {
		desired[f.world.Desired[i].ProcessGUID] = &f.world.Desired[i]
	}
	live := map[lrp.Key]bool{}
	for _, c := range f.world.Cells {
		memory, disk := 0, 0
		for _, s := range c.Containers {
			memory, disk = memory+s.MemoryMB, disk+s.DiskMB
			key := lrp.Key{ProcessGUID: s.ProcessGUID, Index: s.Index}
			if s.Kind == lrp.KindInstance && live[key] {
				return fmt.Errorf("two instances of %v live", key)
			}
			live[key] = true
			if d := desired[s.ProcessGUID]; d != nil && !d.Constraint.Allows(c.Tags) {
				return fmt.Errorf("%v is on %s, whose tags are %v", key, c.ID, c.Tags)
			}
		}
		if memory > c.MemoryMB || disk > c.DiskMB || len(c.Containers) > c.Cell.Containers {
			return fmt.Errorf("%s has %d of %d MB of memory, %d of %d MB of disk, %d of %d containers", c.ID, memory, c.MemoryMB, disk, c.DiskMB, len(c.Containers), c.Cell.Containers)
		}
	}
	return nil
}
