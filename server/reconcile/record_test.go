package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// events are the audit events so far.
func (h *harness) events() (all []*cf.Event) {
	h.t.Helper()
	h.read(func(tx *store.Tx) (err error) {
		all, err = store.Events.All(tx)
		return err
	})
	return all
}

// wantEvent checks the newest event, which is about an app.
func (h *harness) wantEvent(kind string, actor cf.Actor, app *cf.App, data map[string]any) {
	h.t.Helper()
	all := h.events()
	if len(all) == 0 {
		h.t.Fatalf("got no events; want %s", kind)
	}
	got := all[len(all)-1]
	want := &cf.Event{Resource: got.Resource, Type: kind, Actor: actor, TargetGUID: app.GUID, TargetType: "app", TargetName: app.Name,
		SpaceGUID: h.space.GUID, OrgGUID: h.space.OrgGUID, Data: data}
	if d := cmp.Diff(want, got); d != "" {
		h.t.Error(d)
	}
}

// TestReadinessIsRecorded has Cloud Controller's events (CC:
// ProcessEventRepository.record_readiness_changed). What stops is not recorded as not ready:
// Diego removes its LRP then.
func TestReadinessIsRecorded(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, p := h.app("hello", 1, 64)
		h.runAll()
		a := h.actuals()[0]
		by := cf.Actor{GUID: p.GUID, Type: "process", Name: "web"}
		data := func(ready bool) map[string]any {
			return map[string]any{"instance": a.InstanceGUID, "index": 0.0, "cell_id": "cell-1", "ready": ready, "version": strings.TrimPrefix(a.ProcessGUID, p.GUID+"-")}
		}
		h.wantEvent("audit.app.process.ready", by, app, data(true))
		line := func(text string, ready bool) string {
			return fmt.Sprintf(`%s with guid %s payload: {"instance":"%s","index":0,"cell_id":"cell-1","ready":%t,"version":"%s"}`, text, p.GUID, a.InstanceGUID, ready, data(ready)["version"])
		}
		h.wantLine("API", line("Process became ready", true))
		h.cell.ready(a.InstanceGUID, false)
		h.wait()
		h.wantEvent("audit.app.process.not-ready", by, app, data(false))
		h.wantLine("API", line("Process became not ready", false))
		h.cell.ready(a.InstanceGUID, false) // a second report of the same
		h.wait()
		h.cell.ready(a.InstanceGUID, true)
		h.wait()
		h.wantEvent("audit.app.process.ready", by, app, data(true))
		h.write(func(tx *store.Tx) error {
			app.State = cf.Stopped
			return store.Apps.Update(tx, app)
		})
		h.wait()
		h.exitAll()
		if got := len(h.events()); got != 3 {
			t.Errorf("got %d events; want 3", got)
		}
	})
}

// TestAMoveIsRecorded has Cloud Controller's event of an instance that leaves its cell (CC:
// ProcessEventRepository.record_rescheduling; tps: watcher.go).
func TestAMoveIsRecorded(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, p := h.app("hello", 1, 64)
		h.runAll()
		a := *h.actuals()[0]
		h.write(func(tx *store.Tx) error {
			_, _, err := stopInstance(tx, Action{Op: Stop, Actual: a, Moves: true})
			return err
		})
		h.wantEvent("audit.app.process.rescheduling", cf.Actor{GUID: p.GUID, Type: "process", Name: "web"}, app, map[string]any{"instance": a.InstanceGUID,
			"index": 0.0, "cell_id": "cell-1", "reason": "Cell is being evacuated", "version": strings.TrimPrefix(a.ProcessGUID, p.GUID+"-")})
	})
}

// TestATaskWithoutRoomSaysSo: the reason is there at once, and goes when the task starts.
func TestATaskWithoutRoomSaysSo(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.cell.size(100)
		app, _ := h.app("hello", 0, 64)
		row := &cf.Task{AppGUID: app.GUID, DropletGUID: app.DropletGUID, SequenceID: 1, Name: "x", Command: "true", State: cf.TaskRunning, MemoryMB: 200, LogRateLimit: -1}
		h.write(func(tx *store.Tx) error {
			if err := store.Tasks.Insert(tx, row); err != nil {
				return err
			}
			return store.LRPTasks.Insert(tx, lrp.Task{GUID: row.GUID, Domain: lrp.DomainTasks, State: lrp.TaskPending, CreatedAt: tx.Now, UpdatedAt: tx.Now})
		})
		h.wait()
		const reason = "insufficient resources: memory"
		if got := get(h, store.Tasks, row.GUID); got.State != cf.TaskRunning || got.FailureReason != reason {
			t.Fatalf("got %+v; want %q at once", got, reason)
		}
		h.wantEvent("audit.app.task.unplaced", cf.Actor{GUID: row.GUID, Type: "task", Name: "x"}, app, map[string]any{"task_guid": row.GUID, "reason": reason})
		h.cell.size(1000)
		h.pass(31 * time.Second)
		h.wait()
		if got := get(h, store.Tasks, row.GUID); got.State != cf.TaskRunning || got.FailureReason != "" {
			t.Errorf("got %+v; want a task that runs", got)
		}
		if got := len(h.events()); got != 1 {
			t.Errorf("got %d events; want one", got)
		}
	})
}

// TestBuildsAreRecorded has Cloud Controller's events of builds (CC: BuildEventRepository).
func TestBuildsAreRecorded(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, _ := h.app("hello", 0, 64)
		by := cf.Actor{GUID: "user-1", Type: "user", Name: "joe"}
		end := func(e lrp.Event) *cf.Build {
			b := h.build(app)
			b.CreatedBy = by
			h.write(func(tx *store.Tx) error { return store.Builds.Update(tx, b) })
			h.wait()
			h.cell.exit(b.GUID, e)
			h.wait()
			return get(h, store.Builds, b.GUID)
		}
		b := end(lrp.Event{Result: []byte(result), Outputs: []lrp.Blob{{Name: "droplet", Digest: "d2"}}})
		h.wantEvent("audit.app.build.staged", by, app, map[string]any{"build_guid": b.GUID, "package_guid": b.PackageGUID, "droplet_guid": b.DropletGUID,
			"buildpacks": []any{map[string]any{"name": "binary_buildpack", "buildpack_name": "binary", "version": "1.0"}}})
		b = end(lrp.Event{Exit: lrp.Exit{Failed: true, Reason: "STG: Exited with status 222"}})
		h.wantEvent("audit.app.build.failed", by, app, map[string]any{"build_guid": b.GUID, "package_guid": b.PackageGUID,
			"error_id": "NoAppDetectedError", "error_message": "staging failed"})
	})
}
