package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func plan(w World) []string {
	w.Now = noon
	var list []string
	for _, a := range Plan(w) {
		list = append(list, a.String())
	}
	return list
}

func desired(guid string, instances, memoryMB int) lrp.Desired {
	return lrp.Desired{ProcessGUID: guid, Domain: lrp.DomainApps, Instances: instances, RunInfo: lrp.RunInfo{RootFS: "preloaded:minifs", MemoryMB: memoryMB, DiskMB: 10}}
}

func cell(id string, memoryMB int, has ...lrp.ContainerStatus) CellState {
	return CellState{Cell: lrp.Cell{ID: id, MemoryMB: memoryMB, DiskMB: 100, Containers: 5, RootFSes: []string{"minifs"}}, Containers: has}
}

func has(guid string, phase lrp.Phase, memoryMB int) lrp.ContainerStatus {
	return lrp.ContainerStatus{GUID: guid, Kind: lrp.KindInstance, ProcessGUID: "other", Phase: phase, MemoryMB: memoryMB, DiskMB: 10, Ready: phase == lrp.PhaseRunning, Address: "a"}
}

func row(guid string, index int, state lrp.ActualState, instance string) lrp.Actual {
	a := lrp.Actual{Key: lrp.Key{ProcessGUID: guid, Index: index}, State: state, InstanceGUID: instance, Since: noon}
	if instance != "" {
		a.CellID = "c"
	}
	if state == lrp.Running {
		a.Ready, a.Address = true, "a"
	}
	return a
}

// TestWhatIsNotKnownStays makes a container run that nothing is known to desire.
func TestWhatIsNotKnownStays(t *testing.T) {
	w := World{
		Actuals: []lrp.Actual{row("kept", 0, lrp.Running, "k"), row("gone", 0, lrp.Running, "g")},
		Cells:   []CellState{cell("c", 100, has("k", lrp.PhaseRunning, 10), has("g", lrp.PhaseRunning, 10))},
		Kept:    map[string]bool{"kept": true},
	}
	got := plan(w)
	w.Actuals, w.Cells = w.Actuals[1:], []CellState{cell("c", 100, has("g", lrp.PhaseRunning, 10))}
	if diff := cmp.Diff(plan(w), got); diff != "" || len(got) != 1 {
		t.Errorf("got %q; want the other one alone stopped: %s", got, diff)
	}
}

// TestUnmonitored starts nothing of an instance whose processes end as they like.
func TestUnmonitored(t *testing.T) {
	d := desired("p", 4, 10)
	crashed := Crashed(row("p", 1, lrp.Running, "x"), "exit 0", noon)
	w := World{Desired: []lrp.Desired{d}, Actuals: []lrp.Actual{row("p", 0, lrp.Running, "i"), crashed, row("p", 2, lrp.Running, "lost")}, Cells: []CellState{cell("c", 100, has("i", lrp.PhaseRunning, 10))}}
	w.Desired[0].Unmonitored = true
	if diff := cmp.Diff([]string{"unclaim p/2", "create p/3"}, plan(w)); diff != "" {
		t.Error(diff)
	}
	w.Desired[0].Unmonitored = false
	if got := plan(w); len(got) != 5 {
		t.Errorf("got %q; want three started again", got)
	}
}

// TestUnreachableCell leaves what is on a cell alone of which nothing is known, and starts nothing
// there.
func TestUnreachableCell(t *testing.T) {
	lost := cell("c", 100)
	lost.Unreachable = true
	running := task("t", func(t *lrp.Task) { t.State, t.CellID = lrp.TaskRunning, "c" })
	w := World{
		Desired: []lrp.Desired{desired("p", 2, 10)}, Actuals: []lrp.Actual{row("p", 0, lrp.Running, "i"), row("gone", 0, lrp.Running, "g"), stopping(row("gone", 1, lrp.Running, "s"))},
		Tasks: []lrp.Task{running}, Work: []Work{work("t", 10, func(w *Work) { w.Begun = true })}, Cells: []CellState{lost},
	}
	if diff := cmp.Diff([]string{"create p/1", "deny p/1: unable to communicate to compatible cells"}, plan(w)); diff != "" {
		t.Error(diff)
	}
	w.Cells[0].Containers = []lrp.ContainerStatus{has("i", lrp.PhaseRunning, 10)}
	w.Actuals, w.Desired[0].Instances = w.Actuals[:1], 1
	if got := plan(w); len(got) > 0 {
		t.Errorf("got %q for what runs on a cell that does not answer for a while", got)
	}
}

func stopping(a lrp.Actual) lrp.Actual {
	a.Stopping = true
	return a
}

func work(guid string, memoryMB int, change func(*Work)) Work {
	w := Work{GUID: guid, Domain: lrp.DomainTasks, Run: lrp.RunInfo{RootFS: "preloaded:minifs", MemoryMB: memoryMB}}
	if change != nil {
		change(&w)
	}
	return w
}

func task(guid string, change func(*lrp.Task)) lrp.Task {
	t := lrp.Task{GUID: guid, Domain: lrp.DomainTasks, State: lrp.TaskPending, CreatedAt: noon, UpdatedAt: noon}
	if change != nil {
		change(&t)
	}
	return t
}

func TestPlanOfInstances(t *testing.T) {
	denied := row("p", 0, lrp.Unclaimed, "")
	denied.PlacementError = "insufficient resources: memory"
	for _, c := range []struct {
		name string
		w    World
		want []string
	}{
		{"new ones are made and started", World{Desired: []lrp.Desired{desired("p", 2, 10)}, Cells: []CellState{cell("c", 100)}},
			[]string{"create p/0", "create p/1", "start p/0 on c", "start p/1 on c"}},
		{"rows are there at once when there is no room", World{Desired: []lrp.Desired{desired("p", 1, 101)}, Cells: []CellState{cell("c", 100)}},
			[]string{"create p/0", "deny p/0: insufficient resources: memory"}},
		{"a denial is said once", World{Desired: []lrp.Desired{desired("p", 1, 101)}, Actuals: []lrp.Actual{denied}, Cells: []CellState{cell("c", 100)}}, nil},
		{"a scale down stops the highest", World{Desired: []lrp.Desired{desired("p", 1, 10)}, Cells: []CellState{cell("c", 100, has("i0", lrp.PhaseRunning, 10), has("i1", lrp.PhaseRunning, 10))},
			Actuals: []lrp.Actual{row("p", 0, lrp.Running, "i0"), row("p", 1, lrp.Running, "i1"), row("p", 2, lrp.Crashed, ""), row("p", 3, lrp.Unclaimed, "")}},
			[]string{"stop p/1", "remove p/2", "remove p/3"}},
		{"an old revision makes room for the new", World{Desired: []lrp.Desired{desired("p-2", 1, 80)}, Cells: []CellState{cell("c", 100, has("i0", lrp.PhaseRunning, 80))},
			Actuals: []lrp.Actual{row("p-1", 0, lrp.Running, "i0")}},
			[]string{"stop p-1/0", "create p-2/0"}},
		{"which nobody takes meanwhile", World{Desired: []lrp.Desired{desired("a", 1, 90), desired("b", 1, 20)}, Cells: []CellState{cell("c", 100, has("i0", lrp.PhaseStopping, 50))},
			Actuals: []lrp.Actual{row("a", 0, lrp.Unclaimed, ""), row("b", 0, lrp.Unclaimed, ""), stopping(row("p-1", 0, lrp.Running, "i0"))}},
			[]string{"deny b/0: insufficient resources: memory"}},
		{"a container that is gone is replaced", World{Desired: []lrp.Desired{desired("p", 1, 10)}, Cells: []CellState{cell("c", 100)}, Actuals: []lrp.Actual{row("p", 0, lrp.Running, "i0")}},
			[]string{"unclaim p/0", "start p/0 on c"}},
		{"and its row goes when it was stopping", World{Desired: []lrp.Desired{desired("p", 1, 10)}, Cells: []CellState{cell("c", 100)}, Actuals: []lrp.Actual{stopping(row("p", 0, lrp.Running, "i0"))}},
			[]string{"remove p/0"}},
		{"or not wanted", World{Cells: []CellState{cell("c", 100)}, Actuals: []lrp.Actual{row("p", 0, lrp.Claimed, "i0")}}, []string{"remove p/0"}},
		{"a stop that was not heard is said again", World{Cells: []CellState{cell("c", 100, has("i0", lrp.PhaseRunning, 10))}, Actuals: []lrp.Actual{stopping(row("p", 0, lrp.Running, "i0"))}},
			[]string{"halt i0 on c"}},
		{"a stop in flight is left alone", World{Desired: []lrp.Desired{desired("p", 1, 10)}, Cells: []CellState{cell("c", 100, has("i0", lrp.PhaseStopping, 10))}, Actuals: []lrp.Actual{stopping(row("p", 0, lrp.Running, "i0"))}}, nil},
		{"a lost event is made up for", World{Desired: []lrp.Desired{desired("p", 1, 10)}, Cells: []CellState{cell("c", 100, has("i0", lrp.PhaseRunning, 10))}, Actuals: []lrp.Actual{row("p", 0, lrp.Claimed, "i0")}},
			[]string{"amend p/0"}},
		{"a container without a row is stopped", World{Cells: []CellState{cell("c", 100, has("x", lrp.PhaseStarting, 10), has("y", lrp.PhaseExited, 10))}}, []string{"halt x on c"}},
		{"first ones, then tasks, then others, larger before smaller", World{Desired: []lrp.Desired{desired("a", 2, 5), desired("b", 2, 7)}, Work: []Work{work("t", 1, nil)}, Cells: []CellState{cell("c", 100)}},
			[]string{"create a/0", "create a/1", "create b/0", "create b/1", "create-task t", "start b/0 on c", "start a/0 on c", "start-task t on c", "start b/1 on c", "start a/1 on c"}},
		{"instances are spread", World{Desired: []lrp.Desired{desired("p", 2, 10)}, Cells: []CellState{cell("c", 100), cell("d", 100)}},
			[]string{"create p/0", "create p/1", "start p/0 on c", "start p/1 on d"}},
		{"nothing to do", World{Desired: []lrp.Desired{desired("p", 1, 10)}, Cells: []CellState{cell("c", 100, has("i0", lrp.PhaseRunning, 10))}, Actuals: []lrp.Actual{row("p", 0, lrp.Running, "i0")}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, plan(c.w)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPlacementErrors(t *testing.T) {
	full := cell("full", 10)
	full.Cell.Containers = 0
	narrow := cell("narrow", 1000)
	narrow.DiskMB = 0
	other := cell("other", 1000)
	other.RootFSes = []string{"host"}
	for _, c := range []struct {
		name  string
		cells []CellState
		want  string
	}{
		{"no cell", nil, "unable to communicate to compatible cells"},
		{"no stack", []CellState{other}, "found no compatible cell for required rootfs"},
		{"memory", []CellState{cell("c", 10), other}, "insufficient resources: memory"},
		{"all", []CellState{{Cell: lrp.Cell{ID: "c", RootFSes: []string{"minifs"}}}}, "insufficient resources: containers, disk, memory"},
		{"two", []CellState{full}, "insufficient resources: containers, memory"},
		{"each another", []CellState{cell("c", 10), narrow}, "insufficient resources"},
	} {
		want := []string{"create p/0", "deny p/0: " + c.want}
		if d := cmp.Diff(want, plan(World{Desired: []lrp.Desired{desired("p", 1, 50)}, Cells: c.cells})); d != "" {
			t.Error(c.name, d)
		}
	}
}

func TestPlanOfTasks(t *testing.T) {
	running := func(t *lrp.Task) { t.State, t.CellID = lrp.TaskRunning, "c" }
	container := has("t", lrp.PhaseRunning, 10)
	container.Kind = lrp.KindTask
	room, none := []CellState{cell("c", 100)}, []CellState{cell("c", 1)}
	for _, c := range []struct {
		name string
		w    World
		want []string
	}{
		{"wanted", World{Work: []Work{work("t", 10, nil)}, Cells: room}, []string{"create-task t", "start-task t on c"}},
		{"waiting", World{Work: []Work{work("t", 10, func(w *Work) { w.Waits = true })}, Tasks: []lrp.Task{task("t", nil)}, Cells: room}, nil},
		{"cannot run", World{Work: []Work{work("t", 10, func(w *Work) { w.Fault = "no stack" })}, Tasks: []lrp.Task{task("t", nil)}, Cells: room}, []string{"fail-task t: no stack"}},
		{"cancelled before it ran", World{Work: []Work{work("t", 10, func(w *Work) { w.Cancelled = true })}, Cells: room}, []string{"create-task t", "fail-task t: task was cancelled"}},
		{"cancelled while it ran", World{Work: []Work{work("t", 10, func(w *Work) { w.Cancelled = true })}, Tasks: []lrp.Task{task("t", running)}, Cells: []CellState{cell("c", 100, container)}},
			[]string{"fail-task t on c: task was cancelled", "halt t on c"}},
		{"its owner is gone", World{Tasks: []lrp.Task{task("t", running)}, Cells: []CellState{cell("c", 100, container)}}, []string{"drop-task t", "halt t on c"}},
		{"running", World{Work: []Work{work("t", 10, nil)}, Tasks: []lrp.Task{task("t", running)}, Cells: []CellState{cell("c", 100, container)}}, nil},
		{"lost", World{Work: []Work{work("t", 10, nil)}, Tasks: []lrp.Task{task("t", running)}, Cells: room}, []string{"fail-task t on c: cell disappeared before completion"}},
		{"begun and without a row", World{Work: []Work{work("t", 10, func(w *Work) { w.Begun = true })}, Cells: room}, []string{"create-task t", "fail-task t: cell disappeared before completion"}},
		{"a staging that was lost is repeated", World{Work: []Work{work("t", 10, nil)}, Cells: room,
			Tasks: []lrp.Task{task("t", func(t *lrp.Task) { running(t); t.Domain = lrp.DomainStaging })}}, []string{"requeue-task t: cell disappeared before completion"}},
		{"but not for ever", World{Work: []Work{work("t", 10, nil)}, Cells: room,
			Tasks: []lrp.Task{task("t", func(t *lrp.Task) { running(t); t.Domain = lrp.DomainStaging; t.Rejections = 3 })}}, []string{"fail-task t on c: cell disappeared before completion"}},
		{"no room", World{Work: []Work{work("t", 10, nil)}, Tasks: []lrp.Task{task("t", nil)}, Cells: none}, []string{"reject-task t: insufficient resources: memory"}},
		{"rejected a moment ago", World{Work: []Work{work("t", 10, nil)}, Tasks: []lrp.Task{task("t", func(t *lrp.Task) { t.Rejections = 1 })}, Cells: none}, nil},
		{"rejected too often", World{Work: []Work{work("t", 10, nil)}, Cells: none,
			Tasks: []lrp.Task{task("t", func(t *lrp.Task) { t.Rejections, t.UpdatedAt = 3, noon.Add(-30*time.Second) })}}, []string{"fail-task t: insufficient resources: memory"}},
		{"pending too long", World{Work: []Work{work("t", 10, nil)}, Cells: room, Tasks: []lrp.Task{task("t", func(t *lrp.Task) { t.CreatedAt = noon.Add(-30 * time.Minute) })}},
			[]string{"fail-task t: not started within time limit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.w.Tasks {
				for j := range c.w.Work {
					c.w.Work[j].Domain = c.w.Tasks[i].Domain
				}
			}
			if d := cmp.Diff(c.want, plan(c.w)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCrashPolicy(t *testing.T) {
	for _, c := range []struct {
		before int
		ran    time.Duration
		count  int
		state  lrp.ActualState
		wait   time.Duration
		ever   bool
	}{
		{0, time.Second, 1, lrp.Unclaimed, 30 * time.Second, true},
		{1, time.Second, 2, lrp.Unclaimed, 30 * time.Second, true},
		{2, time.Second, 3, lrp.Crashed, 30 * time.Second, true},
		{3, time.Second, 4, lrp.Crashed, time.Minute, true},
		{4, time.Second, 5, lrp.Crashed, 2 * time.Minute, true},
		{5, time.Second, 6, lrp.Crashed, 4 * time.Minute, true},
		{6, time.Second, 7, lrp.Crashed, 8 * time.Minute, true},
		{7, time.Second, 8, lrp.Crashed, 16 * time.Minute, true},
		{100, time.Second, 101, lrp.Crashed, 16 * time.Minute, true},
		{198, time.Second, 199, lrp.Crashed, 16 * time.Minute, true},
		{199, time.Second, 200, lrp.Crashed, 0, false},
		{7, 5 * time.Minute, 8, lrp.Crashed, 16 * time.Minute, true},
		{7, 5*time.Minute + 1, 1, lrp.Unclaimed, 30 * time.Second, true},
	} {
		was := row("p", 0, lrp.Running, "i")
		was.CrashCount, was.Since = c.before, noon.Add(-c.ran)
		got := Crashed(was, "APP/PROC/WEB: Exited with status 4", noon)
		if got.CrashCount != c.count || got.State != c.state || got.InstanceGUID != "" || got.CrashReason == "" || !got.Since.Equal(noon) {
			t.Errorf("crash %d after %v: got %+v", c.before+1, c.ran, got)
		}
		at, ever := restartAt(got)
		if ever != c.ever || ever && at.Sub(noon) != c.wait {
			t.Errorf("crash %d: got restart after %v (%v); want %v (%v)", c.count, at.Sub(noon), ever, c.wait, c.ever)
		}
	}
}

func TestAnInstanceThatNeverRanKeepsItsCount(t *testing.T) {
	was := row("p", 0, lrp.Claimed, "i")
	was.CrashCount, was.Since = 2, noon.Add(-time.Hour)
	if got := Crashed(was, "", noon); got.CrashCount != 3 || got.State != lrp.Crashed {
		t.Errorf("got %+v", got)
	}
}

func TestWake(t *testing.T) {
	later := row("p", 0, lrp.Crashed, "")
	later.CrashCount = 4
	never := row("p", 1, lrp.Crashed, "")
	never.CrashCount = 200
	w := World{Now: noon, Actuals: []lrp.Actual{later, never}}
	if got := wake(w); !got.Equal(noon.Add(time.Minute)) {
		t.Errorf("got %v", got)
	}
	w.Tasks = []lrp.Task{task("t", nil)}
	if got := wake(w); !got.Equal(noon.Add(30 * time.Second)) {
		t.Errorf("got %v", got)
	}
	if got := wake(World{Now: noon}); !got.IsZero() {
		t.Errorf("got %v; want never", got)
	}
}

// TestPlanOfFiles refreshes what runs with other files than it should, once.
func TestPlanOfFiles(t *testing.T) {
	files := func(content string) []lrp.File { return []lrp.File{{Path: "db/password", Content: []byte(content)}} }
	d := desired("p", 3, 1)
	d.Files = files("new")
	with := func(guid string, phase lrp.Phase, files []lrp.File) lrp.ContainerStatus {
		c := has(guid, phase, 1)
		c.FilesDigest, c.CellID = lrp.FilesDigest(files), "c"
		return c
	}
	w := World{Desired: []lrp.Desired{d}, Actuals: []lrp.Actual{row("p", 0, lrp.Running, "i0"), row("p", 1, lrp.Running, "i1"), row("p", 2, lrp.Claimed, "i2")},
		Cells: []CellState{cell("c", 10, with("i0", lrp.PhaseRunning, files("old")), with("i1", lrp.PhaseRunning, files("new")), with("i2", lrp.PhaseCreating, files("old")))}}
	if diff := cmp.Diff([]string{"refresh p/0 on c"}, plan(w)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	w.Cells[0].Containers[0].FilesDigest = "" // it was started without a place for files
	if got := plan(w); len(got) > 0 {
		t.Errorf("got %q; want nothing to do", got)
	}
}
