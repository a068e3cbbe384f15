package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/reconcile"
)

// Config says how large a fleet is.
type Config struct {
	Cells     int
	Instances int
	Seed      uint64 // the same one makes the same fleet
}

// fleet is a world in memory.
type fleet struct {
	rand  *rand.Rand
	world reconcile.World
	all   []lrp.Desired // what start starts

	rows   map[lrp.Key]int // in world.Actuals
	places map[string]int  // containers by GUID: their cell
	lost   []reconcile.CellState

	starting, stopping []string // containers that do so until the next tick
	serial             int
}

// Of every ten processes, one runs an image, and two require a tag.
const (
	stack    = "preloaded:cflinuxfs4"
	images   = 50
	tags     = 4
	headroom = 1.3 // memory of the cells by that of the instances
)

func newFleet(c Config) *fleet {
	f := &fleet{rand: rand.New(rand.NewPCG(c.Seed, 0)), rows: map[lrp.Key]int{}, places: map[string]int{}}
	f.world.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	memory := 0
	for left := c.Instances; left > 0; {
		d := f.process(min(1+f.rand.IntN(9), left))
		left -= d.Instances
		memory += d.Instances * d.MemoryMB
		f.all = append(f.all, d)
	}
	each := int(float64(memory)*headroom)/max(c.Cells, 1) + 2048
	for i := range c.Cells {
		f.world.Cells = append(f.world.Cells, reconcile.CellState{Cell: lrp.Cell{ID: fmt.Sprintf("cell-%04d", i), MemoryMB: each, DiskMB: 4 * each,
			Containers: 2*c.Instances/max(c.Cells, 1) + 50, RootFSes: []string{"cflinuxfs4"}, RootFSProviders: []string{"docker"}, Tags: []string{tag(i)}}})
	}
	return f
}

func tag(n int) string { return fmt.Sprint("tag-", n%tags) }

// process draws an app's process.
func (f *fleet) process(instances int) lrp.Desired {
	f.serial++
	sizes := []int{64, 64, 128, 128, 256, 256, 512, 1024}
	d := lrp.Desired{ProcessGUID: f.guid("process"), Domain: lrp.DomainApps, Instances: instances}
	d.RootFS, d.MemoryMB, d.DiskMB = stack, sizes[f.rand.IntN(len(sizes))], 256
	switch n := f.rand.IntN(10); {
	case n == 0:
		d.RootFS = fmt.Sprint("docker:///image-", f.rand.IntN(images))
	case n <= 2:
		d.Constraint.Require = []string{tag(f.rand.IntN(tags))}
	}
	return d
}

// guid is a name as long as a GUID.
func (f *fleet) guid(kind string) string {
	f.serial++
	return fmt.Sprintf("%s-%028d", kind, f.serial)
}

// happen applies a step.
func (f *fleet) happen(s Step) {
	switch s.Verb {
	case "start":
		f.world.Desired = f.all
	case "lose":
		n := s.of(len(f.world.Cells))
		for _, c := range f.world.Cells[len(f.world.Cells)-n:] {
			for _, status := range c.Containers {
				delete(f.places, status.GUID)
			}
			c.Containers = nil
			f.lost = append(f.lost, c)
		}
		f.world.Cells = f.world.Cells[:len(f.world.Cells)-n]
	case "return":
		n := min(s.of(len(f.world.Cells)+len(f.lost)), len(f.lost))
		f.world.Cells, f.lost = append(f.world.Cells, f.lost[:n]...), f.lost[n:]
	case "leave":
		left := s.of(len(f.world.Cells))
		for i := 0; i < len(f.world.Cells) && left > 0; i++ {
			if c := &f.world.Cells[i]; !c.Leaving {
				c.Leaving = true
				left--
			}
		}
	case "crash":
		f.crash(s.of(len(f.world.Actuals)))
	case "deploy":
		for i := range s.of(len(f.all)) {
			f.all[i].ProcessGUID = f.guid("process")
		}
	case "tasks":
		f.tasks(s.N)
	case "wait":
		f.world.Now = f.world.Now.Add(s.For)
	}
}

// crash crashes instances that run, as a cell would tell it.
func (f *fleet) crash(n int) {
	for _, i := range f.rand.Perm(len(f.world.Actuals))[:n] {
		a := &f.world.Actuals[i]
		if a.State == lrp.Running && !a.Stopping {
			f.drop(a.InstanceGUID)
			*a = reconcile.Crashed(*a, "crashed", f.world.Now)
		}
	}
}

func (f *fleet) tasks(n int) {
	for range n {
		f.world.Work = append(f.world.Work, reconcile.Work{GUID: f.guid("task"), Domain: lrp.DomainTasks, Run: lrp.RunInfo{RootFS: stack, MemoryMB: 512, DiskMB: 256}})
	}
}

// drop takes a container away.
func (f *fleet) drop(guid string) (lrp.ContainerStatus, bool) {
	cell, ok := f.places[guid]
	if !ok || cell >= len(f.world.Cells) {
		return lrp.ContainerStatus{}, false
	}
	delete(f.places, guid)
	list := f.world.Cells[cell].Containers
	for i, s := range list {
		if s.GUID == guid {
			list[i] = list[len(list)-1]
			f.world.Cells[cell].Containers = list[:len(list)-1]
			return s, true
		}
	}
	return lrp.ContainerStatus{}, false
}

// status finds a container.
func (f *fleet) status(guid string) *lrp.ContainerStatus {
	cell, ok := f.places[guid]
	if !ok || cell >= len(f.world.Cells) {
		return nil
	}
	list := f.world.Cells[cell].Containers
	for i := range list {
		if list[i].GUID == guid {
			return &list[i]
		}
	}
	return nil
}
