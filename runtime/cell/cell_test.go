package cell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/health"
	"cupola/runtime/lrp"

	"github.com/google/go-cmp/cmp"
)

// daemon is a cell on a fake machine, until it is killed.
type daemon struct {
	*Cell
	m    *machine
	kill func() // ends Run, waits for it

	mu       sync.Mutex
	events   []lrp.Event
	reported []string // events and lines, in order
	checks   chan health.Event
}

// boot runs a cell on m, in a synctest bubble.
func boot(t *testing.T, m *machine, dir string, before ...func(*Cell)) *daemon {
	d := &daemon{m: m, checks: make(chan health.Event)}
	c, err := New(Config{
		Dir: dir, Presence: lrp.Cell{ID: "C", MemoryMB: 8192},
		Containers: m, Network: fakeNetwork{m}, RootFS: fakeRoots{m}, Images: fakeRoots{m}, Files: fakeFiles{m}, Users: fakeUsers{m}, Identities: m.issuer,
		Blob: m.blob, Keep: keepFake, Logs: d.log, Events: d.event,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.boot = "this boot"
	c.follow = func(*instance, string, string) (output, error) { return &fakeOutput{}, nil }
	c.check = d.check
	d.Cell = c
	for _, do := range before {
		do(c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	d.kill = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got Run error %v; want none", err)
		}
	}
	synctest.Wait()
	return d
}

func (m *machine) blob(digest string) (string, error) {
	if digest == "missing" {
		return "", os.ErrNotExist
	}
	path := filepath.Join(m.blobs, digest)
	return path, os.WriteFile(path, []byte(digest), 0o600)
}

func keepFake(_ context.Context, name string, f *os.File, _ string) (lrp.Blob, error) {
	content, err := io.ReadAll(f)
	return lrp.Blob{Name: name, Digest: string(content), Size: int64(len(content))}, err
}

func (d *daemon) event(e lrp.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
	d.reported = append(d.reported, strings.TrimSpace(fmt.Sprintf("event %s %s", e.Type, e.Exit.Reason)))
}

func (d *daemon) log(l lrp.LogLine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	stream := "out"
	if l.Err {
		stream = "err"
	}
	d.reported = append(d.reported, fmt.Sprintf("%s %s: %s", l.Target.Source, stream, l.Text))
}

// check is healthy at once, but for a port check: that says what the test says.
func (d *daemon) check(ctx context.Context, s *health.Spec, event func(health.Event)) {
	if len(s.Checks.Liveness) == 0 || s.Healthy {
		event(health.Event{Type: health.Healthy})
		event(health.Event{Type: health.Ready})
	}
	for {
		select {
		case e := <-d.checks:
			event(e)
			if e.Type == health.Unhealthy || e.Type == health.NeverHealthy {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// last waits for the last event of a container.
func (d *daemon) last(t *testing.T) lrp.Event {
	t.Helper()
	<-time.After(15 * time.Second) // of the bubble's clock: more than a stop takes
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.events) == 0 || d.events[len(d.events)-1].Type != lrp.EventExited {
		t.Fatalf("got %v; want an exit at last", d.reported)
	}
	return d.events[len(d.events)-1]
}

// wantNothing fails if anything is left of any container.
func (d *daemon) wantNothing(t *testing.T) {
	t.Helper()
	m := d.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.running) + len(m.networks) + len(m.roots) + len(m.memories) + len(m.policies) + len(m.users); n != 0 {
		t.Errorf("got %v %v %v %v %v %v left; want nothing", m.running, m.networks, m.roots, m.memories, m.policies, m.users)
	}
	entries, err := os.ReadDir(d.cfg.Dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("got state %v, error %v; want none", entries, err)
	}
}

func web() lrp.Container {
	return lrp.Container{
		GUID: "g1", Kind: lrp.KindInstance, ProcessGUID: "p1", Index: 2,
		RunInfo: lrp.RunInfo{
			RootFS: "preloaded:minifs", Layers: []lrp.Layer{{Source: lrp.Blobbed("droplet"), Dest: "/home/vcap"}},
			Setup:  lrp.Download{Source: lrp.Blobbed("in"), To: "/tmp/app"}.Action(),
			Action: lrp.Run{Path: "/bin/web"}.Action(), MemoryMB: 64, DiskMB: 128, CPUWeight: 50,
			Log:   lrp.LogTarget{GUID: "app", Source: "APP/PROC/WEB", Instance: "2"},
			Ports: []uint16{8080}, Env: []lrp.EnvVar{{Name: "SECRET", Value: "s3cr3t"}},
			Egress: []lrp.EgressRule{{Protocol: "all", Destinations: []string{"0.0.0.0/0"}}},
		},
	}
}

func task() lrp.Container {
	c := web()
	c.GUID, c.Kind, c.Ports = "t1", lrp.KindTask, nil
	c.Log.Source = "STG"
	c.ResultFile = "/tmp/result.json"
	c.Action = lrp.Serial(c.Action,
		lrp.Upload{Artifact: "droplet", From: "/tmp/droplet", To: "blob:droplet"}.Action(),
		lrp.Tried(lrp.Upload{Artifact: "cache", From: "/tmp/cache", To: "blob:cache"}.Action()))
	return c
}

// side is the action of a sidecar.
func side() lrp.Action {
	return lrp.Run{Path: "/bin/side", LogSource: "APP/PROC/WEB/SIDECAR/SIDE"}.Action()
}

func TestLifeAndCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		d.Start(web())
		synctest.Wait()
		want := []lrp.ContainerStatus{{
			GUID: "g1", Kind: lrp.KindInstance, ProcessGUID: "p1", Index: 2, Phase: lrp.PhaseRunning,
			Address: "10.200.0.1", Ready: true, MemoryMB: 64, DiskMB: 128, CellID: "C", RootFS: "preloaded:minifs",
		}}
		if diff := cmp.Diff(want, d.Containers()); diff != "" {
			t.Error(diff)
		}
		d.m.end("g1", container.Exit{Code: 137, Signal: 9, OOM: true, Known: true})
		got := d.last(t).Exit
		if diff := cmp.Diff(lrp.Exit{Code: 137, Failed: true, Reason: "APP/PROC/WEB: Exited with status 137 (out of memory)"}, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{
			"CELL out: Cell C creating container for instance g1",
			"CELL out: Cell C successfully created container for instance g1",
			"event running", "event ready",
			"APP/PROC/WEB out: Exit status 137 (out of memory)",
			"CELL out: Cell C destroying container for instance g1",
			"CELL out: Cell C successfully destroyed container for instance g1",
			"event exited APP/PROC/WEB: Exited with status 137 (out of memory)",
		}, d.reported); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{
			"acquire g1", "set ", "mount g1", "write g1", "write g1", "write g1", "create g1", "extract g1", "start g1",
			"remove g1", "forget g1", "unmount g1", "set ", "release g1",
		}, d.m.calls[1:]); diff != "" {
			t.Error(diff)
		}
		d.wantNothing(t)
		if got := d.Containers(); got != nil {
			t.Errorf("got %v; want no container", got)
		}
	})
}

// Whatever step fails, nothing is left and the reason is Diego's.
func TestEveryStepFails(t *testing.T) {
	tests := map[string]string{
		"acquire": "failed to create container: network: broken",
		"set":     "failed to create container: network: set egress policies: broken",
		"mount":   "failed to create container: root filesystem: broken",
		"extract": "Copying into the container failed: broken",
		"write":   "failed to create container: files: broken",
		"create":  "failed to create container: memory: broken",
		"start":   "failed to create container: process: broken",
		"exec":    "failed to create container: process: broken",
	}
	for call, want := range tests {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := boot(t, newMachine(t), t.TempDir())
				defer d.kill()
				spec := web()
				spec.Action = lrp.Codependent(spec.Action, side())
				d.m.mu.Lock()
				d.m.fail[call] = errors.New("broken")
				d.m.mu.Unlock()
				d.Start(spec)
				got := d.last(t).Exit
				exit := lrp.Exit{Code: -1, Failed: true, Reason: want}
				if call == "exec" {
					exit.Code = 143 // of the first process, which had begun
				}
				if diff := cmp.Diff(exit, got); diff != "" {
					t.Error(diff)
				}
				d.m.mu.Lock()
				d.m.fail = map[string]error{}
				d.m.mu.Unlock()
				<-time.After(2 * sweepInterval)
				synctest.Wait()
				d.wantNothing(t)
			})
		})
	}
}

func TestBlobMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		spec := web()
		missing := lrp.Download{Source: lrp.Blobbed("missing"), To: "/tmp"}.Action()
		spec.Setup = lrp.Tried(missing)
		d.Start(spec)
		synctest.Wait()
		if got := d.Containers()[0].Phase; got != lrp.PhaseRunning {
			t.Errorf("got %s without an optional input; want running", got)
		}
		spec.GUID = "g2"
		spec.Setup = missing
		d.Start(spec)
		if got := d.last(t).Exit.Reason; got != "Downloading failed" {
			t.Errorf("got %q; want Downloading failed", got)
		}
		spec.GUID = "g3"
		spec.Layers = []lrp.Layer{{Source: lrp.Blobbed("missing")}}
		d.Start(spec)
		if got := d.last(t).Exit.Reason; got != "failed to download cached artifacts" {
			t.Errorf("got %q; want failed to download cached artifacts", got)
		}
	})
}

// Stop ends a container in whatever phase it is.
func TestStopWhileCreating(t *testing.T) {
	for _, call := range []string{"acquire", "set", "mount", "extract", "start"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := boot(t, newMachine(t), t.TempDir())
				defer d.kill()
				d.m.mu.Lock()
				d.m.block[call] = make(chan struct{})
				d.m.mu.Unlock()
				d.Start(web())
				synctest.Wait()
				if got := d.Containers()[0].Phase; got != lrp.PhaseCreating {
					t.Errorf("got phase %s; want creating", got)
				}
				d.m.mu.Lock()
				delete(d.m.block, call)
				d.m.mu.Unlock()
				d.Stop("g1")
				got := d.last(t).Exit
				if diff := cmp.Diff(lrp.Exit{Code: -1, Stopped: true, Reason: "stopped-before-running"}, got); diff != "" {
					t.Error(diff)
				}
				d.wantNothing(t)
			})
		})
	}
}

func TestStop(t *testing.T) {
	tests := []struct {
		name, arg string
		want      lrp.Exit
		line      string
		took      time.Duration
	}{
		{"SIGTERM", "", lrp.Exit{Code: 143, Stopped: true}, "Exit status 143", 0},
		{"SIGKILL", "deaf", lrp.Exit{Code: 137, Stopped: true, Reason: "exceeded graceful shutdown interval"},
			"Exit status 137 (exceeded 10s graceful shutdown interval)", 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := boot(t, newMachine(t), t.TempDir())
				defer d.kill()
				spec := web()
				spec.Action.Run.Args = []string{tt.arg}
				d.Start(spec)
				synctest.Wait()
				began := time.Now()
				d.Stop("g1")
				last := d.last(t)
				if diff := cmp.Diff(tt.want, last.Exit); diff != "" {
					t.Error(diff)
				}
				if took := last.At.Sub(began); took != tt.took {
					t.Errorf("got %s; want %s", took, tt.took)
				}
				if !strings.Contains(strings.Join(d.reported, "\n"), "APP/PROC/WEB out: "+tt.line+"\n") {
					t.Errorf("got %v; want %q", d.reported, tt.line)
				}
				d.wantNothing(t)
			})
		})
	}
}

func TestSidecarEndsContainer(t *testing.T) {
	tests := []struct {
		name string
		exit container.Exit
		want string
	}{
		{"well", container.Exit{Known: true}, "Codependent step exited"},
		{"badly", container.Exit{Code: 3, Known: true}, "APP/PROC/WEB/SIDECAR/SIDE: Exited with status 3"},
		{"killed", container.Exit{Code: 137, Signal: 9, Known: true}, "APP/PROC/WEB/SIDECAR/SIDE: Exited with status 137"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := boot(t, newMachine(t), t.TempDir())
				defer d.kill()
				spec := web()
				spec.Action = lrp.Codependent(spec.Action, side())
				d.Start(spec)
				synctest.Wait()
				d.m.sidecar("g1", 0).end(tt.exit)
				if got := d.last(t).Exit; got.Reason != tt.want || !got.Failed {
					t.Errorf("got %+v; want %q", got, tt.want)
				}
				d.wantNothing(t)
			})
		})
	}
}

// The kernel kills sidecars when the main process ends, and tells of them
// first: they are not to blame.
func TestMainEndsSidecars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		spec := web()
		spec.Action = lrp.Codependent(spec.Action, side(), side())
		d.Start(spec)
		synctest.Wait()
		killed := container.Exit{Code: 137, Signal: 9, Known: true}
		d.m.sidecar("g1", 1).end(killed)
		d.m.sidecar("g1", 0).end(killed)
		synctest.Wait()
		<-time.After(doubtTime / 2)
		d.m.end("g1", container.Exit{Code: 4, Known: true})
		if got := d.last(t).Exit.Reason; got != "APP/PROC/WEB: Exited with status 4" {
			t.Errorf("got %q; want the main process' exit", got)
		}
	})
}

func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		spec := web()
		spec.Checks.Liveness = []lrp.Check{{Type: lrp.CheckPort, Port: 8080}}
		d.Start(spec)
		synctest.Wait()
		for _, step := range []struct {
			say   health.EventType
			phase lrp.Phase
			ready bool
			role  lrp.Role
		}{
			{"", lrp.PhaseStarting, false, lrp.NoRole},
			{health.Healthy, lrp.PhaseRunning, false, lrp.NoRole},
			{health.Passive, lrp.PhaseRunning, false, lrp.Passive},
			{health.Ready, lrp.PhaseRunning, true, lrp.Passive},
			{health.Active, lrp.PhaseRunning, true, lrp.Active},
			{health.NotReady, lrp.PhaseRunning, false, lrp.Active},
		} {
			if step.say != "" {
				d.checks <- health.Event{Type: step.say}
			}
			synctest.Wait()
			if got := d.Containers()[0]; got.Phase != step.phase || got.Ready != step.ready || got.Role != step.role {
				t.Errorf("after %q got %s, ready %t, %q; want %s, %t, %q", step.say, got.Phase, got.Ready, got.Role, step.phase, step.ready, step.role)
			}
		}
		d.checks <- health.Event{Type: health.Unhealthy, Reason: "Instance became unhealthy: x"}
		if got := d.last(t).Exit; got.Reason != "Instance became unhealthy: x" || got.Stopped || !got.Failed {
			t.Errorf("got %+v; want a crash for health", got)
		}
	})
}

func TestTask(t *testing.T) {
	tests := []struct {
		name   string
		files  map[string]string
		exit   container.Exit
		want   lrp.Exit
		result string
		blobs  []lrp.Blob
	}{
		{"done", map[string]string{"/tmp/result.json": "{}", "/tmp/droplet": "tgz"}, container.Exit{Known: true},
			lrp.Exit{}, "{}", []lrp.Blob{{Name: "droplet", Digest: "tgz", Size: 3}}},
		{"failed", map[string]string{"/tmp/result.json": "{}"}, container.Exit{Code: 222, Known: true},
			lrp.Exit{Code: 222, Failed: true, Reason: "STG: Exited with status 222"}, "{}", nil},
		{"no result", map[string]string{"/tmp/droplet": "tgz"}, container.Exit{Known: true}, lrp.Exit{Failed: true, Reason: "failed to fetch result"}, "", nil},
		{"no droplet", map[string]string{"/tmp/result.json": "{}"}, container.Exit{Known: true},
			lrp.Exit{Failed: true, Reason: "Failed to establish stream from container for droplet"}, "{}", nil},
		{"large result", map[string]string{"/tmp/result.json": strings.Repeat(" ", maxResult+1), "/tmp/droplet": "tgz"}, container.Exit{Known: true},
			lrp.Exit{Failed: true, Reason: "failed to fetch result"}, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := boot(t, newMachine(t), t.TempDir())
				defer d.kill()
				d.Start(task())
				synctest.Wait()
				for path, content := range tt.files {
					if err := (fakeRoots{d.m}).WriteFile("t1", path, []byte(content), 0o644, 0, 0); err != nil {
						t.Fatal(err)
					}
				}
				d.m.end("t1", tt.exit)
				got := d.last(t)
				if diff := cmp.Diff(tt.want, got.Exit); diff != "" {
					t.Error(diff)
				}
				if string(got.Result) != tt.result {
					t.Errorf("got result %.20q; want %q", got.Result, tt.result)
				}
				if diff := cmp.Diff(tt.blobs, got.Outputs); diff != "" {
					t.Error(diff)
				}
				d.wantNothing(t)
			})
		})
	}
}

// TestLargeResultIsNotReadWhole holds that a task cannot fill the daemon's memory with its result.
func TestLargeResultIsNotReadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		d := boot(t, m, t.TempDir())
		defer d.kill()
		d.Start(task())
		synctest.Wait()
		for path, size := range map[string]int{"/tmp/result.json": 3 * maxResult, "/tmp/droplet": 3} {
			if err := (fakeRoots{m}).WriteFile("t1", path, make([]byte, size), 0o644, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		same := -1 // shares its offset with the file that the cell reads
		m.opened = func(f *os.File) {
			if filepath.Base(f.Name()) != "result.json" {
				return
			}
			var err error
			if same, err = syscall.Dup(int(f.Fd())); err != nil {
				t.Error(err)
			}
		}
		m.end("t1", container.Exit{Known: true})
		if got := d.last(t); got.Exit.Reason != "failed to fetch result" || len(got.Result) > 0 {
			t.Errorf("got %+v, a result of %d bytes; want none", got.Exit, len(got.Result))
		}
		defer syscall.Close(same)
		if read, err := syscall.Seek(same, 0, io.SeekCurrent); err != nil || read > maxResult+1 {
			t.Errorf("the cell read %d bytes, %v; want at most %d", read, err, maxResult+1)
		}
	})
}

func TestTaskTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		spec := task()
		spec.Action = lrp.Within(2*time.Second, spec.Action)
		d.Start(spec)
		got := d.last(t).Exit
		if diff := cmp.Diff(lrp.Exit{Code: 143, Failed: true, Reason: "exceeded 2s timeout"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRecordHoldsNoSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		spec := web()
		spec.Action.Run.Args = []string{"s3cr3t"}
		spec.Action.Run.Env = spec.Env
		spec.Action = lrp.Codependent(spec.Action, spec.Action)
		spec.Files = []lrp.File{{Path: "f", Content: []byte("s3cr3t")}}
		d.Start(spec)
		synctest.Wait()
		content, err := os.ReadFile(filepath.Join(d.cfg.Dir, "g1", recordFile))
		if err != nil || strings.Contains(string(content), "s3cr3t") {
			t.Errorf("got record %s, error %v; want no secret in it", content, err)
		}
	})
}
