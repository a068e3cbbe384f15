package cell

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"cupola/rootfs/layer"
	"cupola/runtime/container"
	"cupola/runtime/lrp"

	"github.com/google/go-cmp/cmp"
)

// runReal runs a cell with real containers until the test ends; then nothing
// may be left.
func runReal(t *testing.T, kind container.Kind) (*Cell, world, *recorder) {
	t.Helper()
	w := newWorld(t, kind)
	l, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	c, err := New(l.config(r))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		for _, s := range c.Containers() {
			c.Stop(s.GUID)
		}
		eventually(t, "all containers end", func() bool { return len(c.Containers()) == 0 })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		l.tearDown(t)
	})
	return c, w, r
}

func TestRealExits(t *testing.T) { eachKind(t, testRealExits) }

func testRealExits(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	tests := []struct {
		guid, line string
		args       []string
		exit       lrp.Exit
	}{
		{"crash", "APP/PROC/WEB: Exit status 4", []string{"exit", "4"}, lrp.Exit{Code: 4, Failed: true, Reason: "APP/PROC/WEB: Exited with status 4"}},
		{"zero", "APP/PROC/WEB: leaving", []string{"exit", "0"}, lrp.Exit{Failed: true}},
		{"oom", "APP/PROC/WEB: Exit status 137 (out of memory)", []string{"eat"}, lrp.Exit{Code: 137, Failed: true, Reason: "APP/PROC/WEB: Exited with status 137 (out of memory)"}},
		{"disk", "no space left on device", []string{"fill"}, lrp.Exit{Code: 28, Failed: true, Reason: "APP/PROC/WEB: Exited with status 28"}},
		{"drain", "line 99999 of", []string{"chatter", "100000"}, lrp.Exit{Failed: true}},
	}
	for _, tt := range tests {
		c.Start(w.instance(tt.guid, tt.args...))
	}
	for _, tt := range tests {
		eventually(t, tt.guid, func() bool {
			for _, s := range c.Containers() {
				if s.GUID == tt.guid {
					return false
				}
			}
			return true
		})
		if diff := cmp.Diff(tt.exit, exitOf(r, tt.guid)); diff != "" {
			t.Errorf("%s: %s", tt.guid, diff)
		}
		if !strings.Contains(strings.Join(r.output(), "\n"), tt.line) {
			t.Errorf("%s: got no line %q", tt.guid, tt.line)
		}
	}
	if t.Failed() {
		lines := r.output()
		t.Log(strings.Join(lines[:min(len(lines), 40)], "\n"))
	}
}

func exitOf(r *recorder, guid string) lrp.Exit {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.GUID == guid && e.Type == lrp.EventExited {
			return e.Exit
		}
	}
	return lrp.Exit{}
}

func TestRealStop(t *testing.T) { eachKind(t, testRealStop) }

func testRealStop(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	c.Start(w.instance("polite", "term"))
	c.Start(w.instance("default", "exit", "0", "1h"))
	r.wantLine(t, "waiting")
	r.wantLine(t, "leaving")
	began := time.Now()
	c.Stop("polite")
	c.Stop("default")
	if got := r.find(t, "polite", lrp.EventExited).Exit; !got.Stopped || got.Code != 0 {
		t.Errorf("got %+v; want a good end", got)
	}
	if got := r.find(t, "default", lrp.EventExited).Exit; !got.Stopped || got.Code != 143 {
		t.Errorf("got %+v; want the end by SIGTERM", got)
	}
	if took := time.Since(began); took > grace/2 {
		t.Errorf("got %s; want no wait for SIGKILL", took)
	}
	r.wantLine(t, "APP/PROC/WEB: asked to end")
}

func TestRealStopChain(t *testing.T) { eachKind(t, testRealStopChain) }

func testRealStopChain(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	spec := w.instance("g", "ignore")
	spec.Action.Run.Stop = []lrp.Signal{{Name: "INT", Wait: time.Second}, {Name: "QUIT", Wait: time.Second}}
	c.Start(spec)
	r.wantLine(t, "ignoring")
	began := time.Now()
	c.Stop("g")
	if got := r.find(t, "g", lrp.EventExited).Exit; !got.Stopped || got.Reason != "exceeded graceful shutdown interval" {
		t.Errorf("got %+v; want the end by SIGKILL", got)
	}
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("got %s; want both waits", took)
	}
	for _, want := range []string{"got interrupt", "got quit", "(exceeded 2s graceful shutdown interval)"} {
		r.wantLine(t, want)
	}
	if strings.Contains(strings.Join(r.output(), "\n"), "got terminated") {
		t.Error("got SIGTERM; want none")
	}
}

// TestRealProgramsAsChecks has a program that fails for readiness leave the
// container alone, and one for liveness end it.
func TestRealProgramsAsChecks(t *testing.T) { eachKind(t, testRealProgramsAsChecks) }

func testRealProgramsAsChecks(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	program := func(args ...string) *lrp.Run { return &lrp.Run{Path: "/home/vcap/app/app", Args: args} }
	spec := w.instance("g", "sleep", "1h")
	spec.StartTimeout = 20 * time.Second
	spec.Checks.Liveness = []lrp.Check{{Type: lrp.CheckExec, Run: program("exit", "0"), Interval: time.Hour, InvocationTimeout: 5 * time.Second}}
	spec.Checks.Readiness = []lrp.Check{{Type: lrp.CheckExec, Run: program("exit", "3"), Interval: time.Second, InvocationTimeout: 5 * time.Second}}
	c.Start(spec)
	if e := r.find(t, "g", lrp.EventRunning); e.Exit.Failed {
		t.Errorf("got %+v; want it running", e)
	}
	ill := w.instance("ill", "sleep", "1h")
	ill.StartTimeout = time.Second
	ill.Checks.Liveness = []lrp.Check{{Type: lrp.CheckExec, Run: program("exit", "3"), InvocationTimeout: 5 * time.Second}}
	c.Start(ill)
	if got := r.find(t, "ill", lrp.EventExited).Exit; !strings.Contains(got.Reason, "never healthy") {
		t.Errorf("got %+v; want the end of it", got)
	}
	for _, s := range c.Containers() {
		if s.GUID == "g" && s.Ready {
			t.Error("it is ready; its readiness never passed")
		}
	}
}

func TestRealEnvironment(t *testing.T) { eachKind(t, testRealEnvironment) }

func testRealEnvironment(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	spec := w.instance("g", "show", "$PORT", "$CF_INSTANCE_ADDR", "$CF_INSTANCE_INDEX", "$A", "$HOME", "/etc/hostname", "/etc/hosts", "/etc/cf-service-bindings/extra/file", "/tmp/in/app/app/x")
	spec.Env = []lrp.EnvVar{{Name: "A", Value: "definition"}, {Name: "PORT", Value: "9"}}
	spec.Action.Run.Env = []lrp.EnvVar{{Name: "A", Value: "run"}}
	spec.Files = []lrp.File{{Path: "extra/file", Content: []byte("content")}}
	spec.Setup = lrp.Serial(
		lrp.Download{Source: lrp.Blobbed(w.Digest), To: "/tmp/in"}.Action(),
		lrp.Tried(lrp.Download{Source: lrp.Blobbed("none"), To: "/tmp/in"}.Action()))
	c.Start(spec)
	address := r.find(t, "g", lrp.EventRunning).Address
	for _, want := range []string{
		"PORT=9", "CF_INSTANCE_ADDR=" + address + ":8080", "CF_INSTANCE_INDEX=1", "A=run", "HOME=/home/vcap",
		"/etc/hostname: g; ", "/etc/hosts: 127.0.0.1 localhost;::1 localhost;" + address + " g; ", "/etc/cf-service-bindings/extra/file: content <nil>", "as 2000 2000 in /home/vcap on g",
	} {
		r.wantLine(t, want)
	}
	got, ok := c.Stats("g")
	if !ok || got.MemoryBytes == 0 || got.MemoryQuota != 64<<20 || got.DiskBytes == 0 || got.DiskQuota != 64<<20 || got.CPU == 0 {
		t.Errorf("got %+v, %t; want figures", got, ok)
	}
}

func TestRealHealthAndSidecar(t *testing.T) { eachKind(t, testRealHealthAndSidecar) }

func testRealHealthAndSidecar(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	spec := w.instance("g", "serve")
	spec.Checks.Liveness = []lrp.Check{{Type: lrp.CheckHTTP, Port: 8080, Path: "/"}}
	spec.StartTimeout = 10 * time.Second
	spec.Action = lrp.Codependent(spec.Action,
		lrp.Run{Path: "/home/vcap/app/app", Args: []string{"sleep", "1s"}, LogSource: "APP/PROC/WEB/SIDECAR/SIDE"}.Action())
	c.Start(spec)
	r.find(t, "g", lrp.EventReady)
	r.wantLine(t, "CELL: Container became healthy")
	if got := r.find(t, "g", lrp.EventExited).Exit; got.Reason != codependent {
		t.Errorf("got %+v; want %s", got, codependent)
	}
	r.wantLine(t, "APP/PROC/WEB/SIDECAR/SIDE: Exit status 0")
}

// TestRealPod is about containers that share a network, which lasts as long as
// any of them.
func TestRealPod(t *testing.T) { eachKind(t, testRealPod) }

func testRealPod(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	pod := func(guid string, args ...string) string {
		spec := w.instance(guid, args...)
		spec.Pod = "pod"
		c.Start(spec)
		return r.find(t, guid, lrp.EventRunning).Address
	}
	first := pod("first", "serve")
	r.wantLine(t, "APP/PROC/WEB: count")
	if second := pod("second", "show", "/proc/net/tcp6"); second != first {
		t.Errorf("got address %s; want the pod's, %s", second, first)
	}
	r.wantLine(t, "00000000000000000000000000000000:1F90") // where the first listens
	c.Stop("first")
	r.find(t, "first", lrp.EventExited)
	if third := pod("third", "sleep", "1h"); third != first {
		t.Errorf("got address %s; want the pod's still, %s", third, first)
	}
}

// TestRealTree is about files in memory, of which some can be executed.
func TestRealTree(t *testing.T) { eachKind(t, testRealTree) }

func testRealTree(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	spec := w.instance("g", "look", "/var/vcap/jobs/nats/bin/run", "/var/vcap/jobs/nats/config/nats.conf")
	spec.Setup = lrp.Run{Path: "/var/vcap/jobs/nats/bin/run"}.Action()
	spec.Trees = []lrp.Tree{{Path: "/var/vcap/jobs/nats", Files: []lrp.File{
		{Path: "bin/run", Content: []byte("#!/home/vcap/app/app stage\n"), Program: true}, {Path: "config/nats.conf", Content: []byte("port: 4222")},
	}}}
	c.Start(spec)
	r.wantLine(t, "/var/vcap/jobs/nats/bin/run -r-xr-x--- 0 2000 read-only-file-system not-a-directory")
	r.wantLine(t, "/var/vcap/jobs/nats/config/nats.conf -r--r----- 0 2000 read-only-file-system not-a-directory")
}

func TestRealTask(t *testing.T) { eachKind(t, testRealTask) }

func testRealTask(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	spec := w.instance("t", "stage")
	spec.Kind, spec.Ports, spec.ResultFile = lrp.KindTask, nil, "/tmp/result.json"
	spec.Action = lrp.Serial(spec.Action,
		lrp.Upload{Artifact: "droplet", From: "/tmp/droplet", To: "blob:droplet"}.Action(),
		lrp.Tried(lrp.Upload{Artifact: "cache", From: "/tmp/none", To: "blob:cache"}.Action()))
	c.Start(spec)
	got := r.find(t, "t", lrp.EventExited)
	if diff := cmp.Diff(lrp.Exit{}, got.Exit); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]lrp.Blob{{Name: "droplet", Digest: "a droplet", Size: 9}}, got.Outputs); diff != "" || string(got.Result) != "{}" {
		t.Error(diff, string(got.Result))
	}
}

func TestRealPackagesBehave(t *testing.T) { eachKind(t, testRealPackagesBehave) }

func testRealPackagesBehave(t *testing.T, kind container.Kind) {
	w := newWorld(t, kind)
	l, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(w.path("cell"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.tearDown(t) })
	droplet := layer.Layer{Digest: w.Digest, Archive: w.path("app.tgz"), Dest: "/home/vcap", UID: 2000, GID: 2000}
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			b.test(t, seams{
				Containers: Engine(l.engine), Network: l.net, RootFS: l.roots,
				args: []string{"/home/vcap/app/app", "sleep", "1h"}, layers: []layer.Layer{droplet},
			})
		})
	}
}
