package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/guid"
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/desire"
	"cupola/server/ingress"
	"cupola/store"
	"cupola/store/cf"
)

// sources lists what an action downloads.
func sources(a lrp.Action) []string {
	if a.Download != nil {
		return []string{a.Download.From}
	}
	var all []string
	for _, inner := range a.Inner() {
		all = append(all, sources(inner)...)
	}
	return all
}

func TestAnAppIsStartedScaledAndStopped(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
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

// TestARenameChangesTheTagsOfWhatRuns: as Diego does with the metric tags of an
// updated DesiredLRP, without a restart (CC: update_metric_tags_on_rename).
func TestARenameChangesTheTagsOfWhatRuns(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, _ := h.app("hello", 2, 64)
		h.runAll()
		app.Name = "goodbye"
		h.write(func(tx *store.Tx) error { return store.Apps.Update(tx, app) })
		h.wantStates("0:RUNNING 1:RUNNING ")
		for _, c := range h.cell.Containers() {
			if tags := c.LogTags; tags["app_name"] != "goodbye" || tags["instance_id"] != strconv.Itoa(c.Index) || tags["process_instance_id"] != c.GUID || tags["app_id"] != app.GUID {
				t.Errorf("instance %d has %v", c.Index, tags)
			}
		}
	})
}

// TestWhatIsWantedAgainIsNotStopped makes a process wanted again between a plan that
// stops its instance and the plan's transaction, as a canary does that is canceled
// at once: what counted the instance as running was told the truth.
func TestWhatIsWantedAgainIsNotStopped(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.app("hello", 2, 64)
		h.runAll()
		stop := Action{Op: Stop, Actual: *h.actuals()[1]}
		for _, c := range []struct {
			moves bool
			want  string
		}{
			{false, "0:RUNNING 1:RUNNING "},
			{true, "0:RUNNING 1:RUNNING(stopping) "},
		} {
			stop.Moves = c.moves
			h.write(func(tx *store.Tx) error {
				_, err := h.loop.commit(tx, []Action{stop})
				return err
			})
			h.wantStates(c.want)
		}
	})
}

// TestAnEventIsNotTakenBack amends a row by what a plan saw of its container before
// an event changed both.
func TestAnEventIsNotTakenBack(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.app("hello", 1, 64)
		h.runAll()
		row := *h.actuals()[0]
		stale := row
		stale.Ready = false
		h.write(func(tx *store.Tx) error {
			_, err := h.loop.commit(tx, []Action{{Op: Amend, Actual: row, Next: &stale}})
			return err
		})
		if now := h.actuals()[0]; !now.Ready {
			t.Errorf("the row says that the instance is not ready: %+v", now)
		}
		h.cell.take(row.InstanceGUID, func(f *fakeContainer) { f.Ready = false })
		h.write(func(tx *store.Tx) error {
			_, err := h.loop.commit(tx, []Action{{Op: Amend, Actual: row, Next: &stale}})
			return err
		})
		if now := h.actuals()[0]; now.Ready {
			t.Errorf("a lost event was not made up for: %+v", now)
		}
	})
}

const result = `{"lifecycle_metadata":{"detected_buildpack":"binary","buildpacks":[{"key":"binary_buildpack","name":"binary","version":"1.0"}]},
"process_types":{"web":"./run"},"execution_metadata":"","lifecycle_type":"buildpack"}`

func TestABuildIsStaged(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, _ := h.app("hello", 0, 64)
		b := h.build(app)
		if s := h.cell.started; len(s) != 1 || s[0].GUID != b.GUID || s[0].Log.Source != "STG" {
			t.Fatalf("got %+v", s)
		}
		h.cell.exit(b.GUID, lrp.Event{Result: []byte(result), Outputs: []lrp.Blob{{Name: "droplet", Digest: "d2", Size: 7}, {Name: "cache", Digest: "c2"}}})
		h.wait()
		got := get(h, store.Builds, b.GUID)
		if got.State != cf.BuildStaged || got.Error != "" {
			t.Fatalf("got %+v", got)
		}
		d := get(h, store.Droplets, got.DropletGUID)
		if d.Digest != "d2" || d.Size != 7 || d.ProcessTypes["web"] != "./run" || d.Buildpacks[0].DetectOutput != "binary" || d.Stack != "minifs" {
			t.Errorf("got %+v", d)
		}
		h.read(func(tx *store.Tx) error {
			if c, _ := store.BuildCaches.Get(tx, app.GUID, "minifs"); c != "c2" {
				t.Errorf("got cache %q", c)
			}
			if left, _ := store.LRPTasks.All(tx); len(left) != 0 {
				t.Errorf("tasks were left: %v", left)
			}
			return nil
		})
	})
}

// Causes of failed builds: what the build shows, and what the log says. The texts
// are those of CC's errors/v2.yml, failure_reason_sanitizer.rb and
// staging_completion_handler.rb; lines of the staging (STG) are cupola's.
func TestABuildFailsInCloudControllersWords(t *testing.T) {
	const failed, exited = "StagingError - Staging error: staging failed", "STG: Exited with status "
	for _, c := range []struct {
		name, reason, result string
		want                 string   // the build's error
		log                  []string // but for "Staging failed for build GUID", which all have
	}{
		{"detect", exited + "222", "", "NoAppDetectedError - An app was not successfully detected by any available buildpack", []string{"API ERR Failed to stage build: staging failed"}},
		{"compile", exited + "223", "", "BuildpackCompileFailed - App staging failed in the buildpack compile phase", []string{"API ERR Failed to stage build: staging failed"}},
		{"release", exited + "224", "", "BuildpackReleaseFailed - App staging failed in the buildpack release phase", []string{"API ERR Failed to stage build: staging failed"}},
		{"supply", exited + "225", "", failed, []string{"API ERR Failed to stage build: staging failed"}},
		{"finalize", exited + "226", "", failed, []string{"API ERR Failed to stage build: staging failed"}},
		{"memory", exited + "137 (out of memory)", "", failed,
			[]string{"STG ERR Staging failed: " + exited + "137 (out of memory)", "API ERR Failed to stage build: staging failed"}},
		{"time", "exceeded 15m0s timeout", "", "StagingTimeExpired - Staging time expired: staging took longer than 15m0s",
			[]string{"STG ERR Staging failed: exceeded 15m0s timeout", "API ERR Failed to stage build: staging failed"}},
		{"download", "Downloading app package failed", "", failed,
			[]string{"STG ERR Staging failed: Downloading app package failed", "API ERR Failed to stage build: staging failed"}},
		{"container", "failed to create container: no space left on device", "", failed,
			[]string{"STG ERR Staging failed: failed to create container: no space left on device", "API ERR Failed to stage build: staging failed"}},
		{"no result", "", "", "StagingError - Staging error: Malformed message from Diego stager",
			[]string{"STG ERR Staging failed: the buildpacks' result.json cannot be read: unexpected end of JSON input", "API ERR Failed to stage build: Malformed message from Diego stager"}},
		{"bad result", "", "{", "StagingError - Staging error: Malformed message from Diego stager",
			[]string{"STG ERR Staging failed: the buildpacks' result.json cannot be read: unexpected end of JSON input", "API ERR Failed to stage build: Malformed message from Diego stager"}},
		{"no start command", "", strings.Replace(result, `{"web":"./run"}`, "{}", 1), "StagingError - Staging error: Start command not specified", []string{"API ERR Failed to stage build: Start command not specified"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				app, _ := h.app("hello", 0, 64)
				b := h.build(app)
				h.cell.exit(b.GUID, lrp.Event{Exit: lrp.Exit{Failed: c.reason != "", Reason: c.reason}, Result: []byte(c.result), Outputs: []lrp.Blob{{Name: "droplet", Digest: "d2"}}})
				h.wait()
				h.failed(t, b, c.want, c.log)
			})
		})
	}
}

// failed checks the error of a failed build, and what its app's log says of it.
func (h *harness) failed(t *testing.T, b *cf.Build, want string, log []string) {
	t.Helper()
	if got := get(h, store.Builds, b.GUID); got.State != cf.BuildFailed || got.Error != want {
		t.Errorf("got %s, %q; want FAILED, %q", got.State, got.Error, want)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var got []string
	for _, l := range h.lines {
		stream := " OUT "
		if l.Err {
			stream = " ERR "
		}
		if text := l.Target.Source + stream + string(l.Text); text != "API OUT Staging failed for build "+b.GUID {
			got = append(got, text)
		}
	}
	if diff := cmp.Diff(log, got); diff != "" || len(h.lines) != len(got)+1 {
		t.Errorf("log (-want +got):\n%s\nof %d lines", diff, len(h.lines))
	}
}

// A droplet without processes stages where the app has a command of its own.
func TestABuildNeedsAStartCommand(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, web := h.app("hello", 0, 64)
		h.write(func(tx *store.Tx) error {
			web.Command = "./own"
			return store.Processes.Update(tx, web)
		})
		b := h.build(app)
		h.cell.exit(b.GUID, lrp.Event{Result: []byte(strings.Replace(result, `{"web":"./run"}`, "{}", 1)), Outputs: []lrp.Blob{{Name: "droplet", Digest: "d2"}}})
		h.wait()
		if got := get(h, store.Builds, b.GUID); got.State != cf.BuildStaged {
			t.Errorf("got %+v; want it staged", got)
		}
	})
}

// Builds whose container never starts say why, in the log as well.
func TestABuildThatCannotStart(t *testing.T) {
	for _, c := range []struct {
		name, want string
		without    func(tx *store.Tx, b *cf.Build) error
	}{
		{"stack", "The stack could not be found: minifs", func(tx *store.Tx, _ *cf.Build) error {
			s, err := store.Stacks.First(tx, store.Query{})
			if err != nil {
				return err
			}
			return store.Stacks.Delete(tx, s.GUID)
		}},
		{"buildpacks", "There are no buildpacks available", func(tx *store.Tx, _ *cf.Build) error {
			b, err := store.Buildpacks.First(tx, store.Query{})
			if err != nil {
				return err
			}
			return store.Buildpacks.Delete(tx, b.GUID)
		}},
		{"package", "the package or its files are not there any longer: push the app again", func(tx *store.Tx, b *cf.Build) error { return store.Packages.Delete(tx, b.PackageGUID) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				h.cell.size(1) // it waits for room
				app, _ := h.app("hello", 0, 64)
				b := h.build(app)
				h.write(func(tx *store.Tx) error { return c.without(tx, b) })
				h.failed(t, b, "StagingError - Staging error: "+c.want, []string{"STG ERR Staging failed: " + c.want, "API ERR Failed to stage build: " + c.want})
			})
		})
	}
}

func TestABuildWithoutRoomIsRejectedThreeTimes(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.cell.size(100)
		app, _ := h.app("hello", 0, 64)
		b := h.build(app)
		h.pass(89 * time.Second)
		if got := get(h, store.Builds, b.GUID); got.State != cf.BuildStaging {
			t.Fatalf("got %+v; want it to be tried again", got)
		}
		h.pass(2 * time.Second)
		h.wait()
		const why = "insufficient resources: memory"
		h.failed(t, b, "InsufficientResources - Insufficient resources", []string{"STG ERR Staging failed: " + why, "API ERR Failed to stage build: " + why})
	})
}

// A buildpack by URL is not the daemon's to fetch: the container of the build
// does, with what its security groups allow.
func TestABuildFetchesTheBuildpacksItNamesByURL(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, _ := h.app("hello", 0, 64)
		h.build(app, "https://u:p@example.com/a.zip", "binary_buildpack")
		if len(h.cell.started) != 1 {
			t.Fatalf("got %+v", h.cell.started)
		}
		steps := h.cell.started[0].Action.Timeout.Action.Serial.Actions
		if got := sources(steps[0]); !slices.Contains(got, "blob:b1") || slices.Contains(got, "blob:") {
			t.Errorf("got %v; want the admin's buildpack, and none without a digest", got)
		}
		want := lrp.Run{Path: "/.cupola/fetch", Args: []string{"-to=/tmp/buildpackdownloads/42c37112dfc8a96d", "-name=https://***:***@example.com/a.zip"},
			Env: []lrp.EnvVar{{Name: "BUILDPACK_URL", Value: "https://u:p@example.com/a.zip"}}, User: "vcap", Nofile: 16384}
		if d := cmp.Diff(&want, steps[2].Run); d != "" {
			t.Error(d)
		}
		if builder := steps[3].Run; !slices.Contains(builder.Args, "-buildpackOrder=https://***:***@example.com/a.zip,binary_buildpack") {
			t.Errorf("got %v", builder.Args)
		}
	})
}

func TestAPullEndsWithItsBuild(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		ended := make(chan string, 3)
		var began atomic.Int32
		h.pullUntil = func(ctx context.Context, image string) { began.Add(1); <-ctx.Done(); ended <- image }
		var builds []*cf.Build
		for _, name := range []string{"one", "two", "three"} {
			builds = append(builds, h.buildOn(name, "docker://reg.io/"+name, nil))
		}
		h.write(func(tx *store.Tx) error {
			for _, b := range builds {
				if err := store.Builds.Delete(tx, b.GUID); err != nil {
					return err
				}
			}
			return nil
		})
		// The third may begin when one of the others ends, before it is ended itself.
		if began, n := began.Load(), len(ended); n < maxOrgFetches || int(began) != n {
			t.Errorf("%d of %d pulls ended; want all", n, began)
		}
		if len(h.cell.started) != 0 {
			t.Errorf("got %v started", h.cell.started)
		}
	})
}

// TestSlowPullsHoldUpTheirOwnOrganization has a registry that sends nothing.
func TestSlowPullsHoldUpTheirOwnOrganization(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.cell.presence.RootFSProviders = []string{"docker"}
		h.pullUntil = func(ctx context.Context, image string) {
			if strings.Contains(image, "slow") {
				<-ctx.Done()
			}
		}
		h.pull = func(p ImagePull) (Image, error) {
			if strings.Contains(p.Reference, "slow") {
				return Image{}, context.DeadlineExceeded
			}
			return Image{StackImage: cf.StackImage{Reference: imageDigest}}, nil
		}
		var held []*cf.Build
		for n := range 6 {
			held = append(held, h.buildOn(fmt.Sprint("slow", n), "docker://reg.io/slow", nil))
		}
		h.write(func(tx *store.Tx) error {
			org := cf.Org{Name: "another"}
			if err := store.Orgs.Insert(tx, &org); err != nil {
				return err
			}
			h.space = cf.Space{Name: "dev", OrgGUID: org.GUID}
			return store.Spaces.Insert(tx, &h.space)
		})
		b := h.buildOn("other", "docker://reg.io/fast", nil)
		h.wait()
		if s := h.cell.started; len(s) != 1 || s[0].GUID != b.GUID {
			t.Fatalf("got %+v started; want the build of another organization", s)
		}
		h.pass(fetchTime)
		h.wait()
		slow := 0
		for _, b := range held {
			if strings.HasSuffix(get(h, store.Builds, b.GUID).Error, "the stack was not pulled: it took longer than 10m0s") {
				slow++
			}
		}
		if slow != maxOrgFetches {
			t.Errorf("%d were given up as slow; want %d", slow, maxOrgFetches)
		}
		h.pass(desire.StagingTimeout)
		h.wait()
		for _, b := range held {
			if got := get(h, store.Builds, b.GUID); got.State != cf.BuildFailed {
				t.Errorf("got %+v; want none to wait for ever", got)
			}
		}
	})
}

func TestATaskRunsOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(h *harness, guid string)
		state  cf.TaskState
		reason string
	}{
		{"well", func(h *harness, guid string) { h.cell.exit(guid, lrp.Event{}) }, cf.TaskSucceeded, ""},
		{"badly", func(h *harness, guid string) { h.cell.crash(guid, "APP/TASK/x: Exited with status 1") }, cf.TaskFailed, "APP/TASK/x: Exited with status 1"},
		{"cancelled", func(h *harness, guid string) {
			row := get(h, store.Tasks, guid)
			row.State = cf.TaskCanceling
			h.write(func(tx *store.Tx) error { return store.Tasks.Update(tx, row) })
			h.exitAll()
		}, cf.TaskFailed, "task was cancelled"},
		{"lost", func(h *harness, guid string) { h.cell.lose(guid); h.pass(tick) }, cf.TaskFailed, "cell disappeared before completion"},
	} {
		t.Run(c.name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				app, _ := h.app("hello", 0, 64)
				row := &cf.Task{AppGUID: app.GUID, DropletGUID: app.DropletGUID, SequenceID: 1, Name: "x", Command: "true", State: cf.TaskPending, MemoryMB: 64, LogRateLimit: -1}
				h.write(func(tx *store.Tx) error { return store.Tasks.Insert(tx, row) })
				if got := get(h, store.Tasks, row.GUID); got.State != cf.TaskRunning {
					t.Fatalf("got %s; want RUNNING", got.State)
				}
				c.end(h, row.GUID)
				h.wait()
				if got := get(h, store.Tasks, row.GUID); got.State != c.state || got.FailureReason != c.reason {
					t.Errorf("got %s, %q; want %s, %q", got.State, got.FailureReason, c.state, c.reason)
				}
				if n := len(h.cell.started); n != 1 {
					t.Errorf("it was started %d times", n)
				}
				if left := h.cell.Containers(); len(left) != 0 {
					t.Errorf("containers were left: %v", left)
				}
			})
		})
	}
}

func TestACrashLoopFollowsDiegosTable(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.app("hello", 1, 64)
		at := time.Now()
		for i, wait := range []time.Duration{0, 0, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 16 * time.Minute} {
			h.cell.crash(h.cell.guids(lrp.PhaseCreating)[0], "APP/PROC/WEB: Exited with status 4")
			h.wait()
			if wait > 0 {
				h.pass(wait - time.Millisecond)
				h.wait()
				h.wantStates("0:CRASHED ")
				h.pass(time.Millisecond)
				h.wait()
			}
			h.wantStates("0:CLAIMED ")
			if got := h.actuals()[0]; got.CrashCount != i+1 || got.CrashReason == "" || !got.Since.Equal(time.Now()) {
				t.Fatalf("got %+v", got)
			}
			at = at.Add(wait)
		}
		if !at.Equal(time.Now()) {
			t.Errorf("got %v too late", time.Since(at))
		}
		h.runAll()
		h.pass(5*time.Minute + time.Second)
		h.cell.crash(h.cell.guids(lrp.PhaseRunning)[0], "APP/PROC/WEB: Exited with status 4")
		h.wait()
		h.wantStates("0:CLAIMED ")
		if got := h.actuals()[0].CrashCount; got != 1 {
			t.Errorf("got crash count %d after a good run; want 1", got)
		}
	})
}

func TestACrashIsRecorded(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, p := h.app("hello", 1, 64)
		h.runAll()
		was := h.actuals()[0]
		h.cell.crash(was.InstanceGUID, "APP/PROC/WEB: Exited with status 4")
		var events []*cf.Event
		h.read(func(tx *store.Tx) (err error) {
			events, err = store.Events.All(tx)
			return err
		})
		byApp := map[string]any{"instance": was.InstanceGUID, "index": 0.0, "cell_id": "cell-1", "reason": "CRASHED", "exit_description": "APP/PROC/WEB: Exited with status 4"}
		byProcess := maps.Clone(byApp)
		byProcess["crash_count"], byProcess["version"] = 1.0, strings.TrimPrefix(was.ProcessGUID, p.GUID+"-")
		events = events[1:] // that it became ready
		byProcess["crash_timestamp"] = float64(events[0].CreatedAt.UnixNano())
		want := []*cf.Event{
			{Type: "app.crash", Actor: cf.Actor{GUID: app.GUID, Type: "app", Name: "hello"}, TargetGUID: app.GUID, Data: byApp},
			{Type: "audit.app.process.crash", Actor: cf.Actor{GUID: p.GUID, Type: "process", Name: "web"}, TargetGUID: app.GUID, Data: byProcess},
		}
		for i, w := range want {
			w.Resource, w.TargetType, w.TargetName, w.SpaceGUID, w.OrgGUID = events[i].Resource, "app", "hello", h.space.GUID, h.space.OrgGUID
		}
		if d := cmp.Diff(want, events); d != "" {
			t.Error(d)
		}
		h.wantLine("API", `Process has crashed with type: "web"`)
	})
}

func TestARetiredInstanceIsReplaced(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		_, _ = h.app("hello", 2, 64)
		h.runAll()
		was := h.actuals()[1]
		if err := h.loop.retire(t.Context(), was.Key); err != nil {
			t.Fatal(err)
		}
		h.wait()
		h.wantStates("0:RUNNING 1:RUNNING(stopping) ")
		h.exitAll()
		h.wantStates("0:RUNNING 1:CLAIMED ")
		if now := h.actuals()[1]; now.InstanceGUID == was.InstanceGUID || now.CrashCount != 0 {
			t.Errorf("got %+v", now)
		}
		if err := h.loop.retire(t.Context(), lrp.Key{ProcessGUID: was.ProcessGUID, Index: 9}); err != nil {
			t.Errorf("one that is not there: %v", err)
		}
	})
}

func TestARestartWaitsForRoomWithoutComplaint(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.cell.size(100)
		app, _ := h.app("hello", 1, 80)
		h.runAll()
		app.Rev++
		h.write(func(tx *store.Tx) error { return store.Apps.Update(tx, app) })
		h.wantOneOf("0:RUNNING(stopping) 0:UNCLAIMED ", "0:UNCLAIMED 0:RUNNING(stopping) ")
		h.exitAll()
		h.wantStates("0:CLAIMED ")
	})
}

func TestWhatDoesNotFitIsDeniedUntilItDoes(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.cell.size(100)
		_, p := h.app("hello", 3, 40)
		h.wantStates("0:CLAIMED 1:CLAIMED 2:UNCLAIMED(insufficient resources: memory) ")
		h.cell.size(200)
		h.pass(tick)
		h.wantStates("0:CLAIMED 1:CLAIMED 2:CLAIMED ")
		p.Instances = 1000
		h.write(func(tx *store.Tx) error { return store.Processes.Update(tx, p) })
		if n := len(h.actuals()); n != 1000 {
			t.Errorf("got %d rows; want one for each instance", n)
		}
	})
}

func TestLostEventsAreMadeUpFor(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.app("hello", 2, 64)
		h.cell.event = func(lrp.Event) {}
		h.runAll()
		h.wantStates("0:CLAIMED 1:CLAIMED ")
		h.pass(tick)
		h.wantStates("0:RUNNING 1:RUNNING ")
		h.cell.lose(h.actuals()[1].InstanceGUID)
		h.pass(tick)
		h.wantStates("0:RUNNING 1:CLAIMED ")
	})
}

func TestAnEventOfAnotherInstanceChangesNothing(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.app("hello", 1, 64)
		h.runAll()
		key := h.actuals()[0].Key
		for _, e := range []lrp.EventType{lrp.EventRunning, lrp.EventReady, lrp.EventNotReady, lrp.EventExited} {
			h.loop.Event(lrp.Event{Type: e, GUID: "stale", Kind: lrp.KindInstance, Key: key})
			h.loop.Event(lrp.Event{Type: e, GUID: "stale", Kind: lrp.KindTask})
		}
		h.wait()
		h.wantStates("0:RUNNING ")
		if !h.actuals()[0].Ready {
			t.Error("it is not ready any longer")
		}
	})
}

func TestRolesAreWrittenDown(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.app("hello", 1, 64)
		guid := h.cell.guids(lrp.PhaseCreating)[0]
		h.cell.run(guid)
		for _, step := range []struct {
			event lrp.EventType
			want  lrp.Role
		}{{lrp.EventPassive, lrp.Passive}, {lrp.EventActive, lrp.Active}} {
			h.cell.event(h.cell.take(guid, func(f *fakeContainer) { f.Role = step.want }).event(step.event))
			if got := h.actuals()[0].Role; got != step.want {
				t.Errorf("after %s: got %q; want %q", step.event, got, step.want)
			}
		}
		h.cell.take(guid, func(f *fakeContainer) { f.Role = lrp.Passive }) // its event is lost
		h.pass(tick)
		if got := h.actuals()[0].Role; got != lrp.Passive {
			t.Errorf("got %q; want what the cell says", got)
		}
		h.cell.crash(guid, "")
		if got := h.actuals()[0].Role; got != lrp.NoRole {
			t.Errorf("got %q of an instance that crashed; want none", got)
		}
	})
}

func TestAnInstanceThatIsNotReadyLosesItsRoutes(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, _ := h.app("hello", 1, 64)
		h.write(func(tx *store.Tx) error {
			d := &cf.Domain{Name: "localhost"}
			if err := store.Domains.Insert(tx, d); err != nil {
				return err
			}
			return store.Routes.Insert(tx, &cf.Route{SpaceGUID: h.space.GUID, DomainGUID: d.GUID, Host: "hello", Destinations: []cf.Destination{{AppGUID: app.GUID, ProcessType: "web"}}})
		})
		endpoints := func() int {
			n := -1
			h.read(func(tx *store.Tx) error {
				t, err := ingress.Read(tx, bbsrows.New())
				r := t.Routes.Routes
				if len(r) == 1 && r[0].Host == "hello.localhost" {
					n = len(r[0].Endpoints)
				}
				return err
			})
			return n
		}
		guid := h.cell.guids(lrp.PhaseCreating)[0]
		for _, step := range []struct {
			do   func()
			want int
		}{
			{func() {}, 0},
			{func() { h.cell.run(guid) }, 1},
			{func() {
				h.cell.event(h.cell.take(guid, func(f *fakeContainer) { f.Ready = false }).event(lrp.EventNotReady))
			}, 0},
			{func() {
				h.cell.event(h.cell.take(guid, func(f *fakeContainer) { f.Ready = true }).event(lrp.EventReady))
			}, 1},
			{func() { h.cell.crash(guid, "") }, 0},
		} {
			step.do()
			h.wait()
			if got := endpoints(); got != step.want {
				t.Fatalf("got %d endpoints; want %d", got, step.want)
			}
		}
	})
}

func TestTheDaemonIsKilledBetweenAnyTwoSteps(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, p := h.app("hello", 2, 64)
		b := h.build(app)
		changes := []func(){
			func() { h.runAll() },
			func() {
				h.cell.exit(b.GUID, lrp.Event{Result: []byte(result), Outputs: []lrp.Blob{{Name: "droplet", Digest: "d2"}}})
			},
			func() {
				p.Instances = 4
				h.write(func(tx *store.Tx) error { return store.Processes.Update(tx, p) })
			},
			func() { h.cell.crash(h.cell.guids(lrp.PhaseRunning)[0], "died") },
			func() { h.cell.lose(h.cell.guids(lrp.PhaseRunning)[0]) },
			func() {
				app.Rev++
				h.write(func(tx *store.Tx) error { return store.Apps.Update(tx, app) })
			},
			func() { h.exitAll() },
		}
		for i, change := range changes {
			for _, told := range []bool{false, true} {
				// The daemon dies with the change written and nothing, or all
				// but the cell's part, done about it.
				h.stop()
				if !told {
					change()
				} else if err := store.DeriveOnce(t.Context(), h.store, h.loop.decide, func(ctx context.Context, d decision) error {
					_, err := h.loop.write(ctx, d.actions)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				h.begin()
			}
			h.runAll()
			h.exitAll()
			h.cell.sane(t)
			if got := get(h, store.Builds, b.GUID); i > 0 && got.State != cf.BuildStaged {
				t.Fatalf("after change %d: got %+v", i, got)
			}
		}
		h.runAll()
		h.exitAll()
		h.runAll()
		h.wantStates("0:RUNNING 1:RUNNING 2:RUNNING 3:RUNNING ")
		if n := len(h.cell.Containers()); n != 4 {
			t.Errorf("got %d containers; want 4", n)
		}
	})
}

func TestADeletedAppLeavesNothing(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, _ := h.app("hello", 2, 64)
		h.build(app)
		h.runAll()
		h.write(func(tx *store.Tx) error { return store.Apps.Delete(tx, app.GUID) })
		h.exitAll()
		h.wantStates("")
		if left := h.cell.Containers(); len(left) != 0 {
			t.Errorf("got %v", left)
		}
	})
}

// TestInstancesOfAnOlderDaemon adopts an instance whose GUID has 36 characters, as
// daemons made them before they took Diego's 28: it runs on, and its successor has 28.
func TestInstancesOfAnOlderDaemon(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.stop()
		app, p := h.app("hello", 1, 64)
		old := lrp.Actual{Key: lrp.Key{ProcessGUID: desire.ProcessGUID(p, app)}, Domain: lrp.DomainApps, InstanceGUID: guid.New(), CellID: h.cell.presence.ID, State: lrp.Running,
			Ready: true, Address: "10.0.0.9", Ports: []uint16{8080}, Since: time.Now()}
		h.cell.containers[old.InstanceGUID] = &fakeContainer{ContainerStatus: lrp.ContainerStatus{GUID: old.InstanceGUID, Kind: lrp.KindInstance, ProcessGUID: old.ProcessGUID,
			Phase: lrp.PhaseRunning, Ready: true, Address: old.Address, MemoryMB: 64, DiskMB: 64}}
		h.write(func(tx *store.Tx) error { return store.ActualLRPs.Insert(tx, old) })
		h.begin()
		if got := h.actuals(); len(got) != 1 || got[0].InstanceGUID != old.InstanceGUID || got[0].State != lrp.Running || got[0].Stopping {
			t.Fatalf("got %+v; want the instance as it was", got)
		}
		h.cell.exit(old.InstanceGUID, lrp.Event{})
		h.wait()
		h.wantStates("0:CLAIMED ")
		h.runAll()
		if got := h.actuals()[0]; got.State != lrp.Running || len(got.InstanceGUID) != 28 {
			t.Errorf("got %+v; want a running instance with a GUID of 28 characters", got)
		}
	})
}
