package reconcile

import (
	"strings"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

const releasing = `{"lifecycle_metadata":{"buildpacks":[]},"process_types":{"web":"./run","release":"./migrate"},"execution_metadata":"","lifecycle_type":"buildpack"}`

// builtWithRelease stages a build of an app whose droplet has a release command, and returns
// the build and the task of the command.
func (h *harness) builtWithRelease(app *cf.App) (*cf.Build, lrp.Container) {
	h.t.Helper()
	b := h.build(app)
	h.cell.exit(b.GUID, lrp.Event{Result: []byte(releasing), Outputs: []lrp.Blob{{Name: "droplet", Digest: "d2", Size: 7}}})
	h.wait()
	last := h.cell.started[len(h.cell.started)-1]
	if last.GUID == b.GUID || last.Domain != lrp.DomainTasks {
		h.t.Fatalf("got %+v; want the release command to run", last)
	}
	if got := get(h, store.Builds, b.GUID); got.State != cf.BuildStaging {
		h.t.Fatalf("got %s; want it STAGING while the release command runs", got.State)
	}
	return b, last
}

func TestABuildWaitsForTheReleaseCommand(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, _ := h.app("hello", 0, 64)
		b, run := h.builtWithRelease(app)
		task := get(h, store.Tasks, run.GUID)
		if task.Name != "release" || task.Command != "./migrate" || run.Log.Source != "STG" || run.Layers == nil && task.DropletGUID == app.DropletGUID {
			t.Errorf("got task %+v with the log %+v", task, run.Log)
		}
		h.cell.exit(run.GUID, lrp.Event{})
		h.wait()
		got := get(h, store.Builds, b.GUID)
		if got.State != cf.BuildStaged || got.DropletGUID != task.DropletGUID {
			t.Errorf("got %+v; want it STAGED", got)
		}
		h.wantLine("STG", "Running the release command as task release")
		h.wantLine("API", "Staging complete for build "+b.GUID)
	})
}

func TestAReleaseCommandFailsTheBuild(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(h *harness, run lrp.Container)
		want string
	}{
		"exit": {func(h *harness, run lrp.Container) {
			h.cell.exit(run.GUID, lrp.Event{Exit: lrp.Exit{Failed: true, Reason: "STG: Exited with status 3"}})
		}, "Exited with status 3"},
		"hangs": {func(h *harness, _ lrp.Container) { h.pass(16 * time.Minute) }, "exceeded 15m0s timeout"},
		"cancelled": {func(h *harness, run lrp.Container) {
			h.write(func(tx *store.Tx) error {
				t, err := store.Tasks.Get(tx, run.GUID)
				if err != nil {
					return err
				}
				t.State = cf.TaskCanceling
				return store.Tasks.Update(tx, t)
			})
		}, "task was cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				app, _ := h.app("hello", 0, 64)
				b, run := h.builtWithRelease(app)
				made := get(h, store.Builds, b.GUID).DropletGUID
				c.end(h, run)
				h.wait()
				got := get(h, store.Builds, b.GUID)
				if want := "StagingError - Staging error: the release command failed: " + c.want; got.State != cf.BuildFailed || got.Error != want || got.DropletGUID != "" {
					t.Errorf("got %+v; want %s", got, want)
				}
				h.read(func(tx *store.Tx) error {
					if _, err := store.Droplets.Get(tx, made); !store.IsNotFound(err) {
						t.Errorf("the droplet is still there: %v", err)
					}
					return nil
				})
				h.wantLine("API", "Failed to stage build: the release command failed: "+c.want)
			})
		})
	}
}

// TestAReleaseCommandOfTheProcess runs the command that a user gave the process "release", with
// its memory; a quota can refuse it.
func TestAReleaseCommandOfTheProcess(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, _ := h.app("hello", 0, 64)
		h.write(func(tx *store.Tx) error {
			return store.Processes.Insert(tx, &cf.Process{AppGUID: app.GUID, Type: "release", Command: "./own", MemoryMB: 48, DiskMB: 64, LogRateLimit: -1})
		})
		_, run := h.builtWithRelease(app)
		if task := get(h, store.Tasks, run.GUID); task.Command != "./own" || task.MemoryMB != 48 {
			t.Errorf("got %+v", task)
		}
		h.cell.exit(run.GUID, lrp.Event{})
		h.wait()
		h.write(func(tx *store.Tx) error {
			p, err := store.Processes.First(tx, store.Query{Where: map[string][]string{"types": {"release"}}})
			if err != nil {
				return err
			}
			p.Command = strings.Repeat(" ", 3)
			return store.Processes.Update(tx, p)
		})
		b := h.build(app)
		h.cell.exit(b.GUID, lrp.Event{Result: []byte(releasing), Outputs: []lrp.Blob{{Name: "droplet", Digest: "d3", Size: 7}}})
		h.wait()
		if got := get(h, store.Builds, b.GUID); got.State != cf.BuildFailed || !strings.Contains(got.Error, "command presence") {
			t.Errorf("got %+v; want it refused", got)
		}
	})
}
