package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/test/goprogram"
)

// testIDs is the range the tests map containers to.
var testIDs = IDMap{Base: 1 << 20, Size: 1 << 16}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
}

// eachKind runs a test with an Engine of each kind.
func eachKind(t *testing.T, test func(*testing.T, Kind)) {
	t.Helper()
	needRoot(t)
	for _, kind := range []Kind{Runc, Launch} {
		t.Run(string(kind), func(t *testing.T) {
			if err := CheckLaunch(); kind == Launch && err != nil {
				t.Skip(err)
			}
			test(t, kind)
		})
	}
}

// other is the other kind.
func (k Kind) other() Kind {
	if k == Launch {
		return Runc
	}
	return Launch
}

// bench is an Engine with a root file system that holds the probe.
type bench struct {
	*Engine
	cfg    Config
	rootfs string
}

func newBench(t testing.TB, kind Kind) *bench {
	t.Helper()
	needRoot(t)
	base := tempDir(t)
	helper, rootfs := filepath.Join(base, "helper"), filepath.Join(base, "rootfs")
	if err := os.Mkdir(helper, 0o755); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command("../../cmd/lifecycle/init/build", filepath.Join(helper, "init")).CombinedOutput(); err != nil {
		t.Fatalf("build init: %v\n%s", err, msg)
	}
	build(t, "./testdata/probe", filepath.Join(rootfs, "bin", "probe"))
	for _, dir := range []string{"etc", "home", "proc", "sys", "dev", ".cupola"} {
		if err := os.MkdirAll(filepath.Join(rootfs, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	give(t, rootfs)
	b := &bench{rootfs: rootfs, cfg: Config{
		Dir: filepath.Join(base, "state"), CgroupParent: "cupolatest-" + rand.Text()[:8], IDMap: testIDs, HelperDir: helper, Kind: kind,
	}}
	b.Engine = b.reopen(t)
	t.Cleanup(func() { b.removeAll(t) })
	return b
}

// tempDir is a directory that the mapped root user can pass, unlike t.TempDir.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "container")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func build(t testing.TB, pkg, out string) {
	t.Helper()
	if err := goprogram.Build("", pkg, out); err != nil {
		t.Fatal(err)
	}
}

// give makes the container's root the owner of a tree.
func give(t testing.TB, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(testIDs.Base), int(testIDs.Base))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) reopen(t testing.TB) *Engine {
	t.Helper()
	e, err := New(b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (b *bench) removeAll(t testing.TB) {
	states, err := b.List()
	if err != nil {
		t.Error(err)
	}
	for _, s := range states {
		if err := b.Remove(context.Background(), s.ID); err != nil {
			t.Error(err)
		}
	}
	if err := b.Teardown(); err != nil {
		t.Error(err)
	}
}

func (b *bench) spec(id string, args ...string) Spec {
	return Spec{
		ID: id, Rootfs: b.rootfs, Hostname: "host-" + id,
		Process: Process{Args: append([]string{"/bin/probe"}, args...), Env: []string{"PATH=/bin"}, UID: 2000, GID: 2000},
	}
}

// start runs the probe with its output in a pipe.
func (b *bench) start(t testing.TB, spec Spec) (State, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	spec.Stdout, spec.Stderr = w, w
	s, err := b.Start(t.Context(), spec)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// output runs the probe to its end.
func (b *bench) output(t testing.TB, spec Spec) (string, Exit) {
	t.Helper()
	_, r := b.start(t, spec)
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	exit := b.wait(t, spec.ID)
	if err := b.Remove(t.Context(), spec.ID); err != nil {
		t.Fatal(err)
	}
	return string(out), exit
}

func (b *bench) wait(t testing.TB, id string) Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exit, err := b.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func TestStartWaitRemove(t *testing.T) { eachKind(t, testStartWaitRemove) }

func testStartWaitRemove(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	out, exit := b.output(t, b.spec("one", "echo", "hello"))
	if want := "hello\n"; out != want {
		t.Errorf("got output %q; want %q", out, want)
	}
	if want := (Exit{Known: true}); exit != want {
		t.Errorf("got %+v; want %+v", exit, want)
	}
	_, exit = b.output(t, b.spec("two", "exit", "42"))
	if want := (Exit{Code: 42, Known: true}); exit != want {
		t.Errorf("got %+v; want %+v", exit, want)
	}
	if states, err := b.List(); err != nil || len(states) != 0 {
		t.Errorf("got %v, %v; want nothing left", states, err)
	}
}

func TestAdopt(t *testing.T) { eachKind(t, testAdopt) }

func testAdopt(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	started, r := b.start(t, b.spec("app", "sleep"))
	waitLine(t, r, "ready\n")
	b.cfg.Kind = kind.other()
	second := b.reopen(t)
	states, err := second.List()
	if err != nil || len(states) != 1 || states[0] != started {
		t.Fatalf("got %+v, %v; want %+v", states, err, started)
	}
	if err := second.Remove(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	if states, err := b.List(); err != nil || len(states) != 0 {
		t.Errorf("got %v, %v; want nothing left", states, err)
	}
}

func TestSignal(t *testing.T) { eachKind(t, testSignal) }

func testSignal(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	for arg, want := range map[string]Exit{
		"catch":   {Code: 7, Known: true},
		"default": {Code: 143, Known: true},
	} {
		_, r := b.start(t, b.spec(arg, arg))
		waitLine(t, r, "ready\n")
		if err := b.Signal(arg, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit := b.wait(t, arg); exit != want {
			t.Errorf("%s: got %+v; want %+v", arg, exit, want)
		}
		if err := b.Signal(arg, syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: got %v; want %v", arg, err, os.ErrProcessDone)
		}
	}
	if err := b.Signal("none", syscall.SIGTERM); !errors.Is(err, errNotFound) {
		t.Errorf("got %v; want %v", err, errNotFound)
	}
}

// TestSignalAtOnce ends containers as soon as they were started: the signal reaches an init that has not run yet.
func TestSignalAtOnce(t *testing.T) {
	b := newBench(t, Launch)
	for n := range 40 {
		id := fmt.Sprint("app-", n)
		_, r := b.start(t, b.spec(id, "default"))
		if err := b.Signal(id, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit := b.wait(t, id); exit != (Exit{Code: 143, Known: true}) {
			t.Errorf("got %+v; want the end by SIGTERM", exit)
		}
		r.Close()
	}
}

func TestStats(t *testing.T) { eachKind(t, testStats) }

func testStats(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	spec := b.spec("app", "sleep")
	spec.Limits = Limits{MemoryBytes: 64 << 20, CPUShares: 512, CPUs: 1.5, Pids: 100}
	_, r := b.start(t, spec)
	waitLine(t, r, "ready\n")
	s, err := b.Stats("app")
	if err != nil || s.CPU <= 0 || s.MemoryBytes == 0 || s.MemoryBytes > 64<<20 || s.MemoryLimitBytes != 64<<20 || s.Pids == 0 {
		t.Errorf("got %+v, %v; want use of CPU, memory and processes", s, err)
	}
	file, want := "cpu.cfs_quota_us", "150000\n"
	if b.tree.v2 {
		file, want = "cpu.max", "150000 100000\n"
	}
	if got, err := os.ReadFile(filepath.Join(b.tree.dir("cpu", "app"), file)); err != nil || string(got) != want {
		t.Errorf("got %s %q, %v; want %q", file, got, err, want)
	}
	if got, err := os.ReadFile(filepath.Join(b.tree.dir("pids", "app"), "pids.max")); err != nil || string(got) != "101\n" {
		t.Errorf("got pids.max %q, %v; want one more for the init", got, err)
	}
}

func waitLine(t testing.TB, r io.Reader, want string) {
	t.Helper()
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(r, buf); err != nil || string(buf) != want {
		rest, _ := io.ReadAll(r)
		t.Fatalf("got %q, %v; want %q", string(buf)+string(rest), err, want)
	}
}

func TestFailedStartLeavesNothing(t *testing.T) { eachKind(t, testFailedStartLeavesNothing) }

func testFailedStartLeavesNothing(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	spec := b.spec("bad", "echo", "x")
	spec.NetNS = filepath.Join(b.rootfs, "etc")
	if _, err := b.Start(t.Context(), spec); err == nil {
		t.Fatal("got no error for a network namespace that is a directory")
	}
	if states, err := b.List(); err != nil || len(states) != 0 {
		t.Errorf("got %v, %v; want nothing left", states, err)
	}
}

func TestExec(t *testing.T) { eachKind(t, testExec) }

func testExec(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	_, r := b.start(t, b.spec("app", "sleep"))
	waitLine(t, r, "ready\n")
	b.cfg.Kind = kind.other() // which the second one has
	for _, e := range []*Engine{b.Engine, b.reopen(t)} {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		x, err := e.Exec(t.Context(), "app", Process{Args: []string{"/bin/probe", "catch"}, UID: 2000}, Stdio{Out: in, Err: in})
		in.Close()
		if err != nil {
			t.Fatal(err)
		}
		waitLine(t, out, "ready\n")
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", x.PID))
		if want := fmt.Sprintf("/%s/app\n", b.cfg.CgroupParent); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("got cgroups\n%s, %v; want %s in them", data, err, want)
		}
		if err := x.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit, err := x.Wait(t.Context()); err != nil || exit != (Exit{Code: 7, Known: true}) {
			t.Errorf("got %+v, %v; want exit 7", exit, err)
		}
	}
}

// TestNoneMovesTheHelper has root in the container try to move the helper away.
func TestNoneMovesTheHelper(t *testing.T) { eachKind(t, testNoneMovesTheHelper) }

func testNoneMovesTheHelper(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	spec := b.spec("app", "usurp")
	spec.Process.UID, spec.Process.GID = 0, 0
	_, r := b.start(t, spec)
	waitLine(t, r, "rename: rename /.cupola /moved: device or resource busy\nready\n") // it is a mount point
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	x, err := b.Exec(t.Context(), "app", Process{Args: []string{"/bin/probe", "cat", "/proc/self/status"}}, Stdio{Out: in, Err: in})
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	status, err := io.ReadAll(out)
	if err != nil || !strings.Contains(string(status), "Seccomp:\t2") {
		t.Errorf("got %q, %v; want the process under the filter", status, err)
	}
	if exit, err := x.Wait(t.Context()); err != nil || exit.Code != 0 {
		t.Errorf("got %+v, %v; want exit 0", exit, err)
	}
}
