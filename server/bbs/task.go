package bbs

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/guid"
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bbs/model"
	"cupola/store"
)

// taskMessage is a task as clients see it.
func taskMessage(t *store.BBSTask) (*bbspb.Task, error) {
	d, err := bbsrows.DecodeTask(t)
	if err != nil {
		return nil, err
	}
	return model.TaskMessage(t, d), nil
}

func (s *Server) tasks(ctx context.Context, r *bbspb.TasksRequest) (found []*bbspb.Task, err error) {
	where := map[string][]string{}
	if r.Domain != "" {
		where["domains"] = []string{r.Domain}
	}
	if r.CellId != "" {
		where["cells"] = []string{r.CellId}
	}
	err = s.Store.Read(ctx, func(tx *store.Tx) error {
		list, err := store.BBSTasks.Where(tx, where)
		if err != nil {
			return err
		}
		for _, t := range list {
			m, err := taskMessage(t)
			if err != nil {
				return err
			}
			found = append(found, m)
		}
		of, err := s.tasksOfApps(tx, func(t *lrp.Task) bool {
			return (r.Domain == "" || r.Domain == t.Domain) && (r.CellId == "" || r.CellId == t.CellID)
		})
		found = append(found, of...)
		return err
	})
	return found, err
}

// ofApps reports whether a domain is one of those in which Cloud Foundry runs
// tasks and stagings.
func ofApps(domain string) bool { return domain == lrp.DomainTasks || domain == lrp.DomainStaging }

// tasksOfApps are Cloud Foundry's tasks and stagings that have not ended.
func (s *Server) tasksOfApps(tx *store.Tx, wanted func(*lrp.Task) bool) (found []*bbspb.Task, err error) {
	rows, err := store.LRPTasks.All(tx)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(t *lrp.Task) bool { return !ofApps(t.Domain) || !wanted(t) })
	if len(rows) == 0 {
		return nil, nil
	}
	run, err := s.Tasks(tx)
	if err != nil {
		return nil, err
	}
	for _, t := range rows {
		found = append(found, model.PresentTask(t, run[t.GUID]))
	}
	return found, nil
}

func (s *Server) listTasks(ctx context.Context, r *bbspb.TasksRequest) (proto.Message, error) {
	found, err := s.tasks(ctx, r)
	return &bbspb.TasksResponse{Tasks: found}, err
}

func (s *Server) listTasks2(ctx context.Context, r *bbspb.TasksRequest) (proto.Message, error) {
	found, err := s.tasks(ctx, r)
	for i, t := range found {
		found[i] = model.TaskDownTo2(t)
	}
	return &bbspb.TasksResponse{Tasks: found}, err
}

func (s *Server) task(ctx context.Context, guid string) (m *bbspb.Task, err error) {
	if err := model.ValidateGUID("task_guid", guid); err != nil {
		return nil, err
	}
	err = s.Store.Read(ctx, func(tx *store.Tx) error {
		t, err := taskRow(tx, guid)
		if errors.Is(err, model.ErrNotFound) {
			of, fault := s.tasksOfApps(tx, func(t *lrp.Task) bool { return t.GUID == guid })
			if len(of) > 0 {
				m = of[0]
				return nil
			}
			return cmp.Or(fault, err)
		}
		if err != nil {
			return err
		}
		m, err = taskMessage(t)
		return err
	})
	return m, err
}

func (s *Server) getTask(ctx context.Context, r *bbspb.TaskGUIDRequest) (proto.Message, error) {
	m, err := s.task(ctx, r.TaskGuid)
	return &bbspb.TaskResponse{Task: m}, err
}

func (s *Server) getTask2(ctx context.Context, r *bbspb.TaskGUIDRequest) (proto.Message, error) {
	m, err := s.task(ctx, r.TaskGuid)
	if err != nil {
		return nil, err
	}
	return &bbspb.TaskResponse{Task: model.TaskDownTo2(m)}, nil
}

func (s *Server) desireTask(ctx context.Context, r *bbspb.DesireTaskRequest) (proto.Message, error) {
	if err := model.ValidateTask(r); err != nil {
		return nil, err
	}
	if lrp.Derived(r.Domain) {
		return nil, model.ErrOwned("domain " + r.Domain)
	}
	definition, err := proto.Marshal(r.Definition)
	if err != nil {
		return nil, err
	}
	return &bbspb.LifecycleResponse{}, s.Store.Write(ctx, func(tx *store.Tx) error {
		err := store.BBSTasks.Insert(tx, &store.BBSTask{GUID: r.TaskGuid, RunGUID: guid.New(), Domain: r.Domain, State: lrp.TaskPending,
			Callback: r.Definition.CompletionCallbackUrl != "", Definition: definition})
		if store.IsTaken(err) {
			return model.ErrExists
		}
		return err
	})
}

// taskRow returns the row of a task, or ErrNotFound.
func taskRow(tx *store.Tx, guid string) (*store.BBSTask, error) {
	t, err := store.BBSTasks.Get(tx, guid)
	if store.IsNotFound(err) {
		return nil, model.ErrNotFound
	}
	return t, err
}

// changeTask calls change on a task and writes it.
func (s *Server) changeTask(ctx context.Context, r *bbspb.TaskGUIDRequest, change func(*store.Tx, *store.BBSTask) error) (proto.Message, error) {
	if err := model.ValidateGUID("task_guid", r.TaskGuid); err != nil {
		return nil, err
	}
	return &bbspb.LifecycleResponse{}, s.Store.Write(ctx, func(tx *store.Tx) error {
		t, err := taskRow(tx, r.TaskGuid)
		if errors.Is(err, model.ErrNotFound) {
			if of, fault := store.LRPTasks.Get(tx, r.TaskGuid); fault == nil && ofApps(of.Domain) {
				return model.ErrOwned("task " + r.TaskGuid)
			}
		}
		if err != nil {
			return err
		}
		return change(tx, t)
	})
}

// cancelTask completes a task as failed. The loop then ends what runs for it.
func (s *Server) cancelTask(ctx context.Context, r *bbspb.TaskGUIDRequest) (proto.Message, error) {
	return s.changeTask(ctx, r, func(tx *store.Tx, t *store.BBSTask) error {
		if t.State != lrp.TaskPending && t.State != lrp.TaskRunning {
			return model.ErrTransition(t.State, lrp.TaskCompleted)
		}
		return store.BBSTasks.Change(tx, t, func(t *store.BBSTask) {
			t.State, t.CellID, t.FirstCompletedAt = lrp.TaskCompleted, "", tx.Now
			t.Failed, t.FailureReason = true, "task was cancelled"
		})
	})
}

func (s *Server) resolveTask(ctx context.Context, r *bbspb.TaskGUIDRequest) (proto.Message, error) {
	return s.changeTask(ctx, r, resolve)
}

func resolve(tx *store.Tx, t *store.BBSTask) error {
	if t.State != lrp.TaskCompleted {
		return model.ErrTransition(t.State, lrp.TaskResolving)
	}
	return store.BBSTasks.Change(tx, t, func(t *store.BBSTask) { t.State = lrp.TaskResolving })
}

func (s *Server) deleteTask(ctx context.Context, r *bbspb.TaskGUIDRequest) (proto.Message, error) {
	return s.changeTask(ctx, r, func(tx *store.Tx, t *store.BBSTask) error {
		if t.State != lrp.TaskResolving {
			return model.ErrTransition(t.State, lrp.TaskResolving)
		}
		return store.BBSTasks.Delete(tx, t)
	})
}
