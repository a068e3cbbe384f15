package cell

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"cupola/rootfs/layer"
	"cupola/runtime/cell/conformance"
	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"

	"github.com/google/go-cmp/cmp"
)

// runReal runs a cell with real containers until the test ends; then nothing
// may be left.
func runReal(t *testing.T, kind container.Kind) (*Cell, world, *conformance.Recorder) {
	t.Helper()
	w := newWorld(t, kind)
	l, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	r := &conformance.Recorder{}
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
		conformance.Eventually(t, "all containers end", func() bool { return len(c.Containers()) == 0 })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		l.tearDown(t)
	})
	return c, w, r
}

func TestRealConforms(t *testing.T) { eachKind(t, testRealConforms) }

func testRealConforms(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	conformance.Run(t, conformance.Subject{Cell: c.Parts()[0], Recorder: r, Instance: w.instance})
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
	address := r.Find(t, "g", lrp.EventRunning).Address
	for _, want := range []string{
		"PORT=9", "CF_INSTANCE_ADDR=" + address + ":8080", "CF_INSTANCE_INDEX=1", "A=run", "HOME=/home/vcap",
		"/etc/hostname: g; ", "/etc/hosts: 127.0.0.1 localhost;::1 localhost;" + address + " g; ", "/etc/cf-service-bindings/extra/file: content <nil>", "as 2000 2000 in /home/vcap on g",
	} {
		r.WantLine(t, want)
	}
	got, ok := c.Stats("g")
	if !ok || got.MemoryBytes == 0 || got.MemoryQuota != 64<<20 || got.DiskBytes == 0 || got.DiskQuota != 64<<20 || got.CPU == 0 {
		t.Errorf("got %+v, %t; want figures", got, ok)
	}
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
		return r.Find(t, guid, lrp.EventRunning).Address
	}
	first := pod("first", "serve")
	r.WantLine(t, "APP/PROC/WEB: count")
	if second := pod("second", "show", "/proc/net/tcp6"); second != first {
		t.Errorf("got address %s; want the pod's, %s", second, first)
	}
	r.WantLine(t, "00000000000000000000000000000000:1F90") // where the first listens
	c.Stop("first")
	r.Find(t, "first", lrp.EventExited)
	if third := pod("third", "sleep", "1h"); third != first {
		t.Errorf("got address %s; want the pod's still, %s", third, first)
	}
}

// TestRealPeers sends signals to processes of other containers of the pod: to one that the container's init started, and to one
// that runs after a setup. A stand-in ends with its process; a process of another pod has none.
func TestRealPeers(t *testing.T) { eachKind(t, testRealPeers) }

func testRealPeers(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	start := func(guid, pod string, change func(*lrp.Container), args ...string) {
		spec := w.instance(guid, args...)
		spec.ProcessGUID, spec.Pod = guid, pod
		change(&spec)
		c.Start(spec)
	}
	as := func(*lrp.Container) {}
	start("ignores", "pod", as, "ignore")
	start("ends", "pod", func(s *lrp.Container) {
		s.Setup = lrp.Run{Path: "/home/vcap/app/app", Args: []string{"exit", "0", "0s"}}.Action()
	}, "term", "for", "it")
	start("other", "", as, "sleep", "1h")
	for _, guid := range []string{"ignores", "ends", "other"} {
		r.Find(t, guid, lrp.EventRunning)
	}
	r.WantLine(t, "ignoring")
	r.WantLine(t, "waiting for it")
	start("script", "pod", func(s *lrp.Container) {
		const text = `cd /tmp/pids; kill -INT $(cat ignores.pid); kill -TERM $(cat ends.pid); while kill -0 $(cat ends.pid); do sleep 0.1; done; ls; kill -9 $(cat ignores.pid); sleep 1000`
		options := contract.ScriptOptions{Pidfiles: "/tmp/pids"}
		run := lrp.Run{Path: contract.Helper, Args: []string{contract.CommandScript, "", "/bin/sh", "-c", text}}
		for _, name := range []string{"ignores", "ends", "other", "missing"} {
			options.Peers = append(options.Peers, contract.ScriptPeer{Name: name, Executable: "/home/vcap/app/app"})
			run.Peers = append(run.Peers, lrp.Peer{Name: name, Key: lrp.Key{ProcessGUID: name, Index: 1}})
		}
		given, err := json.Marshal(options)
		if err != nil {
			t.Fatal(err)
		}
		run.Args[1], s.Action = string(given), run.Action()
	})
	r.WantLine(t, "got interrupt")
	r.WantLine(t, "asked to end")
	r.Find(t, "ends", lrp.EventExited)
	r.WantLine(t, "APP/PROC/WEB: ends.pid")
	r.WantLine(t, "APP/PROC/WEB: ignores.pid")
	if got := r.Find(t, "ignores", lrp.EventExited).Exit.Reason; !strings.Contains(got, "137") {
		t.Errorf("got %q; want that it was killed", got)
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
	r.WantLine(t, "/var/vcap/jobs/nats/bin/run -r-xr-x--- 0 2000 read-only-file-system not-a-directory")
	r.WantLine(t, "/var/vcap/jobs/nats/config/nats.conf -r--r----- 0 2000 read-only-file-system not-a-directory")
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
	got := r.Find(t, "t", lrp.EventExited)
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
