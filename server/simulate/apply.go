package simulate

import (
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/reconcile"
)

// apply does what a plan says, as the loop and the cells would.
func (f *fleet) apply(actions []reconcile.Action) {
	cells := make(map[string]int, len(f.world.Cells))
	for i := range f.world.Cells {
		cells[f.world.Cells[i].ID] = i
	}
	for i := range actions {
		a := &actions[i]
		switch a.Op {
		case reconcile.Create:
			f.rows[a.Actual.Key] = len(f.world.Actuals)
			f.world.Actuals = append(f.world.Actuals, a.Actual)
		case reconcile.Remove:
			f.remove(a.Actual.Key)
		case reconcile.Halt:
			f.stop(a.Container)
		case reconcile.CreateTask, reconcile.StartTask, reconcile.RejectTask, reconcile.Requeue, reconcile.FailTask, reconcile.DropTask:
			f.applyTask(a, cells)
		default:
			f.applyRow(a, cells)
		}
	}
}

// applyRow does what changes a row.
func (f *fleet) applyRow(a *reconcile.Action, cells map[string]int) {
	row := &f.world.Actuals[f.rows[a.Actual.Key]]
	switch a.Op {
	case reconcile.Unclaim:
		*row = lrp.Actual{Key: row.Key, Domain: row.Domain, State: lrp.Unclaimed, Since: f.world.Now, CrashCount: row.CrashCount, CrashReason: row.CrashReason}
	case reconcile.Deny:
		row.PlacementError = a.Reason
	case reconcile.Amend:
		*row = *a.Next
	case reconcile.Stop:
		row.Stopping = true
		f.stop(row.InstanceGUID)
	case reconcile.Start:
		row.State, row.InstanceGUID, row.CellID, row.PlacementError = lrp.Claimed, f.guid("instance"), a.CellID, ""
		f.start(cells[a.CellID], lrp.ContainerStatus{GUID: row.InstanceGUID, Kind: lrp.KindInstance, ProcessGUID: row.ProcessGUID, Index: row.Index,
			MemoryMB: a.Run.MemoryMB, DiskMB: a.Run.DiskMB, CellID: a.CellID, RootFS: a.Run.RootFS})
	}
}

func (f *fleet) applyTask(a *reconcile.Action, cells map[string]int) {
	at := slices.IndexFunc(f.world.Tasks, func(t lrp.Task) bool { return t.GUID == a.Task.GUID })
	switch a.Op {
	case reconcile.CreateTask:
		f.world.Tasks = append(f.world.Tasks, *a.Task)
	case reconcile.StartTask:
		f.world.Tasks[at].State, f.world.Tasks[at].CellID = lrp.TaskRunning, a.CellID
		f.start(cells[a.CellID], lrp.ContainerStatus{GUID: a.Task.GUID, Kind: lrp.KindTask, MemoryMB: a.Run.MemoryMB, DiskMB: a.Run.DiskMB, CellID: a.CellID, RootFS: a.Run.RootFS})
	case reconcile.RejectTask, reconcile.Requeue:
		t := &f.world.Tasks[at]
		t.State, t.Rejections, t.UpdatedAt = lrp.TaskPending, t.Rejections+1, f.world.Now
	case reconcile.FailTask, reconcile.DropTask:
		f.finishTask(a.Task.GUID)
	}
}

// finishTask ends a task and what wanted it.
func (f *fleet) finishTask(guid string) {
	f.world.Tasks = slices.DeleteFunc(slices.Clone(f.world.Tasks), func(t lrp.Task) bool { return t.GUID == guid })
	f.world.Work = slices.DeleteFunc(slices.Clone(f.world.Work), func(w reconcile.Work) bool { return w.GUID == guid })
}

func (f *fleet) remove(key lrp.Key) {
	at, last := f.rows[key], len(f.world.Actuals)-1
	f.world.Actuals[at] = f.world.Actuals[last]
	f.rows[f.world.Actuals[at].Key] = at
	f.world.Actuals = f.world.Actuals[:last]
	delete(f.rows, key)
}

func (f *fleet) start(cell int, s lrp.ContainerStatus) {
	s.Phase = lrp.PhaseCreating
	f.places[s.GUID] = cell
	f.world.Cells[cell].Containers = append(f.world.Cells[cell].Containers, s)
	f.starting = append(f.starting, s.GUID)
}

func (f *fleet) stop(guid string) {
	if s := f.status(guid); s != nil {
		s.Phase, s.Ready = lrp.PhaseStopping, false
		f.stopping = append(f.stopping, guid)
	}
}

// advance lets a second pass: starting instances run, stopping ones end.
// Running tasks end in the next second.
func (f *fleet) advance() {
	f.world.Now = f.world.Now.Add(1e9)
	for _, guid := range f.stopping {
		if s, ok := f.drop(guid); ok && s.Kind == lrp.KindInstance {
			if at, ok := f.rows[lrp.Key{ProcessGUID: s.ProcessGUID, Index: s.Index}]; ok && f.world.Actuals[at].InstanceGUID == guid {
				f.remove(f.world.Actuals[at].Key)
			}
		}
	}
	f.stopping = f.stopping[:0]
	for _, guid := range f.starting {
		s := f.status(guid)
		switch {
		case s == nil || s.Phase != lrp.PhaseCreating:
		case s.Kind == lrp.KindTask:
			f.drop(guid)
			f.finishTask(guid)
		default:
			s.Phase, s.Address, s.Ready = lrp.PhaseRunning, "10.0.0.1", true
			row := &f.world.Actuals[f.rows[lrp.Key{ProcessGUID: s.ProcessGUID, Index: s.Index}]]
			row.State, row.Since, row.Address, row.Ready = lrp.Running, f.world.Now, s.Address, true
		}
	}
	f.starting = f.starting[:0]
}
