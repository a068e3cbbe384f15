package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cupola/runtime/lrp"
)

// model is a world that plans are applied to: rows and cells in memory.
type model struct {
	w      World
	rows   map[lrp.Key]lrp.Actual
	tasks  map[string]lrp.Task
	ended  map[string]int
	next   int
	varied bool // cells have tags and come and go, and what is desired asks for some
}

func newModel(t *rapid.T, varied bool) *model {
	m := &model{varied: varied, rows: map[lrp.Key]lrp.Actual{}, tasks: map[string]lrp.Task{}, ended: map[string]int{}}
	m.w.Now = time.Unix(1_700_000_000, 0)
	for i := range rapid.IntRange(1, 3).Draw(t, "cells") {
		m.w.Cells = append(m.w.Cells, CellState{Cell: lrp.Cell{ID: fmt.Sprintf("cell-%d", i), DiskMB: 1 << 20, RootFSes: []string{"minifs"},
			MemoryMB: rapid.IntRange(100, 1000).Draw(t, "memory"), Containers: rapid.IntRange(1, 20).Draw(t, "containers")}})
		if varied {
			c := &m.w.Cells[i]
			c.Tags, c.DiskMB = someTags(t), rapid.IntRange(200, 2000).Draw(t, "disk")
			if rapid.Bool().Draw(t, "docker") {
				c.RootFSProviders = []string{"docker"}
			}
		}
	}
	return m
}

func someTags(t *rapid.T) (tags []string) {
	for _, tag := range []string{"a", "B"} {
		if rapid.Bool().Draw(t, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// info draws what runs.
func (m *model) info(t *rapid.T) lrp.RunInfo {
	r := lrp.RunInfo{RootFS: "preloaded:minifs", MemoryMB: rapid.IntRange(10, 400).Draw(t, "size")}
	if !m.varied {
		return r
	}
	r.RootFS = rapid.SampledFrom([]string{"preloaded:minifs", "preloaded:minifs", "docker:///i", "preloaded:none"}).Draw(t, "rootfs")
	r.DiskMB = rapid.IntRange(0, 300).Draw(t, "disk")
	switch rapid.IntRange(0, 4).Draw(t, "constraint") {
	case 0:
		r.Constraint.Require = []string{"A"}
	case 1:
		r.Constraint.Disallow = []string{"b"}
	case 2:
		r.Constraint.Require, r.Constraint.Disallow = []string{"b"}, []string{"A"}
	}
	return r
}

// world is the model as a loop would load it.
func (m *model) world() World {
	w := m.w
	w.Actuals, w.Tasks, w.Work = nil, nil, slices.Clone(w.Work)
	for _, a := range m.rows {
		w.Actuals = append(w.Actuals, a)
	}
	slices.SortFunc(w.Actuals, func(a, b lrp.Actual) int { return cmpString(fmt.Sprint(a.Key), fmt.Sprint(b.Key)) })
	for _, t := range m.tasks {
		w.Tasks = append(w.Tasks, t)
	}
	slices.SortFunc(w.Tasks, func(a, b lrp.Task) int { return cmpString(a.GUID, b.GUID) })
	return w
}

func (m *model) cell(id string) *CellState {
	for i := range m.w.Cells {
		if m.w.Cells[i].ID == id {
			return &m.w.Cells[i]
		}
	}
	return nil
}

func (m *model) container(guid string) *lrp.ContainerStatus {
	for i := range m.w.Cells {
		for j := range m.w.Cells[i].Containers {
			if m.w.Cells[i].Containers[j].GUID == guid {
				return &m.w.Cells[i].Containers[j]
			}
		}
	}
	return nil
}

func (m *model) guids(want func(lrp.ContainerStatus) bool) []string {
	var list []string
	for _, c := range m.w.Cells {
		for _, s := range c.Containers {
			if want(s) {
				list = append(list, s.GUID)
			}
		}
	}
	return list
}

// step plans and does what was planned; tell says whether the cells hear of it.
func (m *model) step(t fataler, tell bool) []Action {
	actions := Plan(m.world())
	for _, a := range actions {
		m.apply(t, a, tell)
		m.check(t)
	}
	return actions
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

func (m *model) apply(t fataler, a Action, tell bool) {
	t.Helper()
	row := m.rows[a.Actual.Key]
	seen := row.State == a.Actual.State && row.InstanceGUID == a.Actual.InstanceGUID && row.Stopping == a.Actual.Stopping
	switch a.Op {
	case Create:
		if row.State != "" {
			t.Fatalf("%s: there is one", a)
		}
		m.rows[a.Actual.Key] = a.Actual
		return
	case Halt:
		m.stop(a.Container, tell)
		return
	case CreateTask:
		m.tasks[a.Task.GUID] = *a.Task
		return
	case StartTask, RejectTask, Requeue, FailTask, DropTask:
		if task := m.tasks[a.Task.GUID]; task.State != a.Task.State {
			t.Fatalf("%s: the task is %q", a, task.State)
		}
		m.applyTask(a, tell)
		return
	}
	if !seen {
		t.Fatalf("%s: the row is %+v", a, row)
	}
	switch a.Op {
	case Remove:
		delete(m.rows, a.Actual.Key)
		return
	case Unclaim:
		row = unclaimed(row, m.w.Now)
	case Deny:
		row.PlacementError = a.Reason
	case Amend:
		row = *a.Next
	case Stop:
		row.Stopping = true
		m.stop(row.InstanceGUID, tell)
	case Start:
		m.next++
		row.State, row.InstanceGUID, row.CellID, row.PlacementError = lrp.Claimed, fmt.Sprintf("i-%d", m.next), a.CellID, ""
		m.start(a, row.InstanceGUID, tell)
	}
	m.rows[a.Actual.Key] = row
}

func (m *model) applyTask(a Action, tell bool) {
	task := *a.Task
	switch a.Op {
	case StartTask:
		task.State, task.CellID = lrp.TaskRunning, a.CellID
		m.start(a, task.GUID, tell)
	case RejectTask, Requeue:
		task.State, task.Rejections, task.UpdatedAt = lrp.TaskPending, task.Rejections+1, m.w.Now
	case FailTask, DropTask:
		m.endTask(task.GUID)
		return
	}
	m.tasks[task.GUID] = task
}

// endTask removes a task and its owner's work.
func (m *model) endTask(guid string) {
	m.ended[guid]++
	delete(m.tasks, guid)
	m.w.Work = slices.DeleteFunc(m.w.Work, func(w Work) bool { return w.GUID == guid })
}

func (m *model) start(a Action, guid string, tell bool) {
	if !tell {
		return
	}
	c, s := m.cell(a.CellID), a.container()
	if _, mismatch := suitable([]*offer{{cell: c.Cell}}, a.Run); mismatch != "" || c.Leaving {
		panic(fmt.Sprintf("%s: %s, leaving %t", a, mismatch, c.Leaving))
	}
	c.Containers = append(c.Containers, lrp.ContainerStatus{GUID: guid, Kind: s.Kind, ProcessGUID: s.ProcessGUID, Index: s.Index,
		Phase: lrp.PhaseCreating, MemoryMB: s.MemoryMB, DiskMB: s.DiskMB})
}

func (m *model) stop(guid string, tell bool) {
	if c := m.container(guid); c != nil && tell {
		c.Phase, c.Ready = lrp.PhaseStopping, false
	}
}

// end removes a container; told says whether its row hears of it.
func (m *model) end(guid string, reported bool) {
	c := *m.container(guid)
	for i := range m.w.Cells {
		m.w.Cells[i].Containers = slices.DeleteFunc(m.w.Cells[i].Containers, func(s lrp.ContainerStatus) bool { return s.GUID == guid })
	}
	if !reported {
		return
	}
	if c.Kind == lrp.KindTask {
		if m.tasks[guid].State == lrp.TaskRunning {
			m.endTask(guid)
		}
		return
	}
	for k, a := range m.rows {
		switch {
		case a.InstanceGUID != guid:
		case a.Stopping || c.Phase == lrp.PhaseStopping:
			delete(m.rows, k)
		default:
			m.rows[k] = Crashed(a, "crashed", m.w.Now)
		}
	}
}

// check is what must hold at every moment.
func (m *model) check(t fataler) {
	t.Helper()
	live := map[lrp.Key]int{}
	for _, c := range m.w.Cells {
		memory, disk := 0, 0
		for _, s := range c.Containers {
			memory, disk = memory+s.MemoryMB, disk+s.DiskMB
			if s.Kind == lrp.KindInstance {
				live[lrp.Key{ProcessGUID: s.ProcessGUID, Index: s.Index}]++
			}
		}
		if memory > c.MemoryMB || disk > c.DiskMB || len(c.Containers) > c.Cell.Containers {
			t.Fatalf("%s has %d of %d MB, %d of %d containers", c.ID, memory, c.MemoryMB, len(c.Containers), c.Cell.Containers)
		}
	}
	for k, n := range live {
		if n > 1 {
			t.Fatalf("%d live instances of %v", n, k)
		}
	}
	for guid, n := range m.ended {
		if n > 1 {
			t.Fatalf("task %s was settled %d times", guid, n)
		}
	}
}

// desire draws what is desired: apps come, go, scale and get new revisions.
func (m *model) desire(t *rapid.T) {
	m.w.Desired = nil
	for i := range rapid.IntRange(0, 4).Draw(t, "apps") {
		guid := fmt.Sprintf("p%d-%d", i, rapid.IntRange(0, 1).Draw(t, "rev"))
		m.w.Desired = append(m.w.Desired, lrp.Desired{ProcessGUID: guid, Domain: lrp.DomainApps, Instances: rapid.IntRange(0, 5).Draw(t, "instances"),
			RunInfo: m.info(t)})
	}
}

func (m *model) addWork(t *rapid.T) {
	m.next++
	domain := rapid.SampledFrom([]string{lrp.DomainTasks, lrp.DomainStaging}).Draw(t, "domain")
	m.w.Work = append(m.w.Work, Work{GUID: fmt.Sprintf("t-%d", m.next), Domain: domain, Run: m.info(t)})
}

// disturb has something happen that no plan asked for.
func (m *model) disturb(t *rapid.T) {
	all := m.guids(func(lrp.ContainerStatus) bool { return true })
	pick := func() string { return rapid.SampledFrom(all).Draw(t, "container") }
	switch rapid.IntRange(0, 7).Draw(t, "event") {
	case 0:
		m.desire(t)
	case 1:
		m.addWork(t)
	case 2:
		m.w.Now = m.w.Now.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "seconds")) * time.Second)
	case 3:
		if len(m.w.Work) > 0 {
			m.w.Work[0].Cancelled = true
		}
	case 4:
		if len(all) > 0 {
			m.end(pick(), true)
		}
	case 5:
		if len(all) > 0 {
			m.end(pick(), false)
		}
	case 6:
		if len(all) > 0 {
			if c := m.container(pick()); c.Phase == lrp.PhaseCreating {
				c.Phase, c.Ready, c.Address = lrp.PhaseRunning, true, "10.0.0.1"
			}
		}
	case 7:
		if m.varied {
			c := &m.w.Cells[rapid.IntRange(0, len(m.w.Cells)-1).Draw(t, "cell")]
			c.Leaving = !c.Leaving
		}
	}
}

func TestWhateverHappensThePlanIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, rapid.Bool().Draw(t, "varied"))
		m.desire(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := m.world()
			actions := m.step(t, rapid.IntRange(0, 9).Draw(t, "told") > 0)
			if !m.varied {
				firstComeFirst(t, before, actions)
			}
			m.disturb(t)
		}
	})
}

// firstComeFirst holds when no further instance was started in the room that a
// first one needed.
func firstComeFirst(t *rapid.T, w World, actions []Action) {
	further := -1
	smallest := 0
	for i, a := range actions {
		if a.Op == Start && a.Actual.Index > 0 && (further < 0 || a.Run.MemoryMB < smallest) {
			further, smallest = i, a.Run.MemoryMB
		}
		if a.Op == Start && a.Actual.Index == 0 && further >= 0 {
			t.Fatalf("%s comes after %s", a, actions[further])
		}
	}
	for _, a := range actions {
		if a.Op == Deny && a.Actual.Index == 0 && further >= 0 && memoryOf(w, a.Actual) <= smallest {
			t.Fatalf("%s, yet %s", a, actions[further])
		}
	}
}

func memoryOf(w World, a lrp.Actual) int {
	for _, d := range w.Desired {
		if d.ProcessGUID == a.ProcessGUID {
			return d.MemoryMB
		}
	}
	return 0
}

func TestEnoughRoomLeadsToAFixpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, rapid.Bool().Draw(t, "varied"))
		m.desire(t)
		for range rapid.IntRange(0, 15).Draw(t, "steps") {
			m.step(t, true)
			m.disturb(t)
		}
		for i := range m.w.Cells {
			m.w.Cells[i].MemoryMB, m.w.Cells[i].DiskMB, m.w.Cells[i].Cell.Containers = 1<<20, 1<<20, 1000
		}
		for range 40 {
			m.w.Now = m.w.Now.Add(16 * time.Minute)
			m.step(t, true)
			for _, g := range m.guids(func(lrp.ContainerStatus) bool { return true }) {
				c := m.container(g)
				switch {
				case c.Phase == lrp.PhaseStopping || c.Kind == lrp.KindTask:
					m.end(g, true)
				case c.Phase == lrp.PhaseCreating:
					c.Phase, c.Ready, c.Address = lrp.PhaseRunning, true, "10.0.0.1"
				}
			}
		}
		m.step(t, true)
		if left := Plan(m.world()); len(left) > 0 {
			t.Fatalf("no fixpoint: %v", left)
		}
		for _, c := range m.w.Cells {
			for _, s := range c.Containers {
				for _, d := range m.w.Desired {
					if c.Leaving && s.ProcessGUID == d.ProcessGUID && m.placeable(d) {
						t.Fatalf("%s/%d is still on %s, which is to go", s.ProcessGUID, s.Index, c.ID)
					}
				}
			}
		}
		wanted, placeable := 0, 0
		for _, d := range m.w.Desired {
			wanted += d.Instances
			if m.placeable(d) {
				placeable += d.Instances
			}
		}
		running := 0
		for _, a := range m.rows {
			if a.State == lrp.Running && !a.Stopping {
				running++
			}
		}
		if running < placeable || running > placeable+m.stranded() || len(m.rows) != wanted || len(m.w.Work) != 0 || len(m.tasks) != 0 {
			t.Fatalf("got %d running of %d rows; want %d of %d; work left: %v", running, len(m.rows), placeable, wanted, m.w.Work)
		}
	})
}

// placeable reports whether a cell that stays suits a Desired.
func (m *model) placeable(d lrp.Desired) bool {
	var offers []*offer
	for _, c := range m.w.Cells {
		if !c.Leaving {
			offers = append(offers, &offer{cell: c.Cell})
		}
	}
	_, mismatch := suitable(offers, &d.RunInfo)
	return mismatch == ""
}

// stranded counts the instances that no cell but one that is to go, or one whose
// tags they do not ask for any longer, may have: they go on there.
func (m *model) stranded() (n int) {
	for _, c := range m.w.Cells {
		for _, s := range c.Containers {
			for _, d := range m.w.Desired {
				if s.Kind == lrp.KindInstance && s.ProcessGUID == d.ProcessGUID && !m.placeable(d) {
					n++
				}
			}
		}
	}
	return n
}
