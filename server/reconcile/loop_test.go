package reconcile

import (
	"testing"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

func TestAnAppIsStartedScaledAndStopped(t *testing.T) {
	inHouse(t, func(h *house) {
		app, p := h.app("hello", 2, 64)
		h.wantStates("0:CLAIMED 1:CLAIMED ")
		h.runAll()
		h.wantStates("0:RUNNING 1:RUNNING ")
		for _, a := range h.actuals() {
			if !a.Ready || a.Address != "10.0.0.9" || len(a.Ports) != 1 {
				t.Errorf("got %+v", a)
			}
		}
		p.Instances = 3
		h.write(func(tx *store.Tx) error { return store.Processes.Update(tx, p) })
		h.wantStates("0:RUNNING 1:RUNNING 2:CLAIMED ")
		h.runAll()
		p.Instances = 1
		h.write(func(tx *store.Tx) error { return store.Processes.Update(tx, p) })
		h.wantStates("0:RUNNING 1:RUNNING(stopping) 2:RUNNING(stopping) ")
		h.exitAll()
		h.wantStates("0:RUNNING ")
		app.State, app.Rev = cf.Stopped, app.Rev+1
		h.write(func(tx *store.Tx) error { return store.Apps.Update(tx, app) })
		h.exitAll()
		h.wantStates("")
	})
}

const result = `{"lifecycle_metadata":{"detected_buildpack":"binary","buildpacks":[{"key":"binary_buildpack","name":"binary","version":"1.0"}]},
"process_types":{"web":"./run"},"execution_metadata":"","lifecycle_type":"buildpack"}`

func TestABuildIsStaged(t *testing.T) {
	inHouse(t, func(h *house) {
		app, _ := h.app("hello", 0, 64)
		b := h.build(app)
		if s := h.cell.started; len(s) != 1 || s[0].GUID != b.GUID || s[0].Log.Source != "STG" {
			t.Fatalf("got %+v", s)
		}
		h.cell.exit(b.GUID, lrp.Event{Result: []byte(result), Outputs: []lrp.Blob{{Name: "droplet", Digest: "d2", Size: 7}, {Name: "cache", Digest: "c2"}}})
		h.settle()
		got := get(h, store.Builds, b.GUID)
		if got.State != cf.BuildStaged || got.Error != "" {
			t.Fatalf("got %+v", got)
		}
		d := get(h, store.Droplets, got.DropletGUID)
		if d.Digest != "d2" || d.Size != 7 || d.ProcessTypes["web"] != "./run" || d.Buildpacks[0].DetectOutput != "binary" || d.Stack != "minifs" {
			t.Errorf("got %+v", d)
		}
		h.read(func(tx *store.Tx) error {
			if c, _ := tx.BuildCache(app.GUID, "minifs"); c != "c2" {
				t.Errorf("got cache %q", c)
			}
			if left, _ := store.LRPTasks.All(tx); len(left) != 0 {
				t.Errorf("tasks were left: %v", left)
			}
			return nil
		})
	})
}
