package bbs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/store"
)

func (w *world) desireTask(guid, callback string) {
	w.t.Helper()
	w.must("/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: guid, Domain: "d", Definition: &bbspb.TaskDefinition{
		RootFs: "preloaded:x", Action: &bbspb.Action{Run: &bbspb.Run{Path: "p", User: "u"}}, Annotation: "mine", CompletionCallbackUrl: callback}})
}

// alter changes a task's row as the loop, or time, would.
func (w *world) alter(guid string, change func(*store.Tx, *store.BBSTask)) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		row, err := store.BBSTasks.Get(tx, guid)
		if err != nil {
			return err
		}
		return store.BBSTasks.Change(tx, row, func(t *store.BBSTask) { change(tx, t) })
	})
}

func complete(tx *store.Tx, t *store.BBSTask) {
	t.State, t.FirstCompletedAt, t.Result = lrp.TaskCompleted, tx.Now, []byte("42")
}

func (w *world) taskState(guid string) bbspb.TaskState {
	w.t.Helper()
	res := &bbspb.TaskResponse{}
	w.ask("/v1/tasks/get_by_task_guid.r3", &bbspb.TaskGUIDRequest{TaskGuid: guid}, res)
	return res.Task.GetState()
}

// TestTaskTransitions holds which call is taken in which state.
func TestTaskTransitions(t *testing.T) {
	w := newWorld(t)
	call := func(what string) string { return "/v1/tasks/" + what }
	id := &bbspb.TaskGUIDRequest{TaskGuid: "t"}
	bad := func(from, to string) *model.Error {
		return &model.Error{Type: model.InvalidStateTransition, Message: "Cannot transition from " + from + " to " + to}
	}
	for _, what := range []string{"cancel", "resolving", "delete", "get_by_task_guid.r3", "get_by_task_guid.r2"} {
		w.fails(model.ErrNotFound, call(what), id)
		w.fails(&model.Error{Type: model.InvalidRequest, Message: "Invalid field: task_guid"}, call(what), &bbspb.TaskGUIDRequest{})
	}
	w.desireTask("t", "")
	w.fails(model.ErrExists, call("desire.r2"), &bbspb.DesireTaskRequest{TaskGuid: "t", Domain: "d",
		Definition: &bbspb.TaskDefinition{RootFs: "preloaded:x", Action: &bbspb.Action{Run: &bbspb.Run{Path: "p", User: "u"}}}})
	w.fails(bad("Pending", "Resolving"), call("resolving"), id)
	w.fails(bad("Pending", "Resolving"), call("delete"), id)
	w.alter("t", func(_ *store.Tx, t *store.BBSTask) { t.State, t.CellID = lrp.TaskRunning, "cell-1" })
	w.fails(bad("Running", "Resolving"), call("delete"), id)

	list := &bbspb.TasksResponse{}
	for _, r := range []*bbspb.TasksRequest{{}, {Domain: "d"}, {CellId: "cell-1"}} {
		for _, path := range []string{"list.r3", "list.r2"} {
			if w.ask(call(path), r, list); len(list.Tasks) != 1 || list.Tasks[0].CellId != "cell-1" || list.Tasks[0].Definition.Annotation != "mine" {
				t.Errorf("%s of %v: got %v", path, r, list)
			}
		}
	}
	if w.ask(call("list.r3"), &bbspb.TasksRequest{Domain: "other"}, list); len(list.Tasks) != 0 {
		t.Errorf("got %v", list)
	}

	w.must(call("cancel"), id)
	res := &bbspb.TaskResponse{}
	w.ask(call("get_by_task_guid.r2"), id, res)
	if g := res.Task; g.State != bbspb.TaskState_TASK_STATE_COMPLETED || !g.Failed || g.FailureReason != "task was cancelled" || g.CellId != "" || g.FirstCompletedAt == 0 || g.Result != "" {
		t.Errorf("got %v", g)
	}
	w.fails(bad("Completed", "Completed"), call("cancel"), id)
	w.must(call("resolving"), id)
	w.fails(bad("Resolving", "Resolving"), call("resolving"), id)
	w.fails(bad("Resolving", "Completed"), call("cancel"), id)
	w.must(call("delete"), id)
	w.fails(model.ErrNotFound, call("delete"), id)
}

// callbackTo answers callbacks with statuses, one after the other; the last is
// repeated.
func callbackTo(t *testing.T, statuses ...int) (url string, calls *atomic.Int32, bodies chan map[string]any) {
	t.Helper()
	calls, bodies = &atomic.Int32{}, make(chan map[string]any, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(calls.Add(1))
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		bodies <- body
		w.WriteHeader(statuses[min(n, len(statuses))-1])
	}))
	t.Cleanup(srv.Close)
	return srv.URL, calls, bodies
}

// until waits for something to hold.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: not yet %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// TestCallback wants an owner to be told, three times at most, and the task to
// be gone when he was.
func TestCallback(t *testing.T) {
	for _, c := range []struct {
		what     string
		statuses []int
		calls    int32
		left     bbspb.TaskState // invalid: the task is gone
	}{
		{"told", []int{200}, 1, 0},
		{"refused", []int{404}, 1, 0}, // any other answer is one
		{"moved", []int{302}, 1, 0},
		{"told in the end", []int{503, 504, 200}, 3, 0},
		{"never told", []int{503}, 3, bbspb.TaskState_TASK_STATE_RESOLVING},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := newWorld(t)
			url, calls, bodies := callbackTo(t, c.statuses...)
			w.desireTask("t", url)
			w.alter("t", complete)
			until(t, "told", func() bool { return calls.Load() == c.calls && w.taskState("t") == c.left })
			body := <-bodies
			if body["task_guid"] != "t" || body["result"] != "42" || body["failed"] != false || body["failure_reason"] != "" || body["annotation"] != "mine" || body["created_at"] == 0.0 {
				t.Errorf("got %v", body)
			}
			if calls.Load() != c.calls {
				t.Errorf("got %d calls; want %d", calls.Load(), c.calls)
			}
		})
	}
}

// TestEndedTasks holds what becomes of tasks whose owner does nothing, in
// Diego's times.
func TestEndedTasks(t *testing.T) {
	w := newWorld(t)
	old := func(age time.Duration, state lrp.TaskState) func(*store.Tx, *store.BBSTask) {
		return func(tx *store.Tx, t *store.BBSTask) {
			complete(tx, t)
			t.State, t.FirstCompletedAt = state, tx.Now.Add(-age)
		}
	}
	w.desireTask("young", "")
	w.desireTask("old", "")
	w.desireTask("resolving", "")
	w.alter("young", old(completedLimit-time.Minute, lrp.TaskCompleted))
	w.alter("resolving", old(completedLimit+time.Minute, lrp.TaskResolving))
	w.alter("old", old(completedLimit+time.Second, lrp.TaskCompleted))
	until(t, "deleted", func() bool { return w.taskState("old") == 0 })
	if got := w.taskState("young"); got != bbspb.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("a task that completed a minute ago: got %v", got)
	}
	if got := w.taskState("resolving"); got != bbspb.TaskState_TASK_STATE_RESOLVING {
		t.Errorf("one whose owner resolves it: got %v", got)
	}
	// The callback of one that is RESOLVING for half a minute is repeated.
	url, calls, _ := callbackTo(t, 200)
	w.desireTask("stuck", url)
	w.write(func(tx *store.Tx) error {
		row, err := store.BBSTasks.Get(tx, "stuck")
		if err != nil {
			return err
		}
		old(time.Minute, lrp.TaskResolving)(tx, row)
		row.UpdatedAt = tx.Now.Add(-kickInterval - time.Second)
		return store.BBSTasks.Update(tx, row)
	})
	until(t, "told", func() bool { return calls.Load() == 1 && w.taskState("stuck") == 0 })
}

// TestTaskEvents follows a task.
func TestTaskEvents(t *testing.T) {
	w := newWorld(t)
	events := w.listen("POST", "/v1/events/tasks.r1", &bbspb.Empty{})
	w.desireTask("t", "")
	w.alter("t", func(_ *store.Tx, t *store.BBSTask) { t.State, t.CellID = lrp.TaskRunning, "cell-1" })
	w.must("/v1/tasks/cancel", &bbspb.TaskGUIDRequest{TaskGuid: "t"})
	w.must("/v1/tasks/resolving", &bbspb.TaskGUIDRequest{TaskGuid: "t"})
	w.must("/v1/tasks/delete", &bbspb.TaskGUIDRequest{TaskGuid: "t"})
	got := names(t, events, "task_created", "task_changed", "task_changed", "task_changed", "task_removed")
	e := into[bbspb.TaskChangedEvent](t, got[2])
	if e.Before.State != bbspb.TaskState_TASK_STATE_RUNNING || e.Before.CellId != "cell-1" || e.After.State != bbspb.TaskState_TASK_STATE_COMPLETED || e.After.FailureReason != "task was cancelled" {
		t.Errorf("got %v", e)
	}
}

// The URL of a callback may hold a secret, and what goes wrong is logged.
func TestCallbackErrorsNameNoURL(t *testing.T) {
	c := newCallbacks(Config{})
	for _, to := range []string{"http://127.0.0.1:1/?token=secret", "http://secret:%zz@h"} {
		if err := c.post(t.Context(), to, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	}
}
