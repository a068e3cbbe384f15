package container

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cupola/runtime/contract"
)

// exec runs the probe in a container to its end.
func (b *bench) exec(t *testing.T, id string, args ...string) (string, Exit) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x, err := b.Exec(t.Context(), id, Process{Args: append([]string{"/bin/probe"}, args...), UID: 2000, GID: 2000}, Stdio{Out: w, Err: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := x.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(out), exit
}

// TestEndBySignal has processes end as they do outside of containers, where PID 1
// would not: jvmkill sends itself SIGKILL, abort SIGABRT.
func TestEndBySignal(t *testing.T) { eachKind(t, testEndBySignal) }

func testEndBySignal(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGABRT, syscall.SIGSEGV} {
		out, exit := b.output(t, b.spec("die", "die", strconv.Itoa(int(sig))))
		if want := (Exit{Code: 128 + int(sig), Known: true}); out != "" || exit != want {
			t.Errorf("%s: got %q, %+v; want %+v", sig, out, exit, want)
		}
	}
}

// TestTracedByInit: who asks to be traced by its parent, and stops for a signal, has not ended.
func TestTracedByInit(t *testing.T) { eachKind(t, testTracedByInit) }

func testTracedByInit(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	if out, exit := b.output(t, b.spec("app", "traced")); out != "went on\n" || exit != (Exit{Code: 128 + int(syscall.SIGTERM), Known: true}) {
		t.Errorf("got %q, %+v; want an app that goes on after SIGURG and SIGTRAP, and ends by SIGTERM", out, exit)
	}
}

func TestInitReaps(t *testing.T) { eachKind(t, testInitReaps) }

func testInitReaps(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	const want = "2000 orphans, 0 zombies\n"
	spec := b.spec("app", "orphans", "2000")
	spec.Limits.Pids = 100
	_, r := b.start(t, spec)
	if line, err := bufio.NewReader(r).ReadString('\n'); line != want { // an init that reaps nothing does not end with its app either
		t.Fatalf("got %q, %v; want %q", line, err, want)
	}
	if exit := b.wait(t, "app"); exit.Code != 0 {
		t.Errorf("got %+v; want the app's end", exit)
	}
	spec = b.spec("idle")
	spec.Process.Args, spec.Limits.Pids = nil, 100
	if _, err := b.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if out, exit := b.exec(t, "idle", "orphans", "2000"); out != want || exit.Code != 0 {
		t.Errorf("beside an init alone: got %q, %+v; want %q", out, exit, want)
	}
}

// TestInitEnds: a container ends with its process, and as it does.
func TestInitEnds(t *testing.T) { eachKind(t, testInitEnds) }

func testInitEnds(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	if _, exit := b.output(t, b.spec("daemon", "daemon")); exit != (Exit{Known: true}) {
		t.Errorf("got %+v; want the end with the process, whatever it leaves behind", exit)
	}
	if out, exit := b.output(t, b.spec("defy", "defy")); exit.Code != 5 {
		t.Errorf("got %q, %+v; want an init that ignores SIGKILL and SIGSTOP from inside", out, exit)
	}
	if out, exit := b.output(t, b.spec("ask", "ask")); out != "kill: <nil>\n" || exit.Code != 7 {
		t.Errorf("got %q, %+v; want a signal forwarded", out, exit)
	}
	_, r := b.start(t, b.spec("app", "sleep"))
	waitLine(t, r, "ready\n")
	b.exec(t, "app", "massacre")
	if exit, want := b.wait(t, "app"), (Exit{Code: 137, Known: true}); exit != want {
		t.Errorf("got %+v; want %+v", exit, want)
	}
}

// TestKillOfStopped ends an app that no SIGTERM reaches: it is stopped.
func TestKillOfStopped(t *testing.T) { eachKind(t, testKillOfStopped) }

func testKillOfStopped(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	_, r := b.start(t, b.spec("app", "stop"))
	waitLine(t, r, "ready\n")
	eventually(t, func() string {
		if b.hasStopped("app") {
			return ""
		}
		return "an app that SIGSTOP has not stopped"
	})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := b.Signal("app", sig); err != nil {
			t.Fatal(err)
		}
	}
	if exit := b.wait(t, "app"); exit.Code != 137 {
		t.Errorf("got %+v; want it killed", exit)
	}
}

// hasStopped reports whether SIGSTOP has stopped a process of a container.
func (b *bench) hasStopped(id string) bool {
	return slices.ContainsFunc(b.tree.pids(b.place(id)), func(pid int) bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return err == nil && strings.Contains(string(text), "State:\tT")
	})
}

// TestKillOfForkBomb ends a container that has as many processes as it may.
func TestKillOfForkBomb(t *testing.T) { eachKind(t, testKillOfForkBomb) }

func testKillOfForkBomb(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	spec := b.spec("app", "bomb")
	spec.Limits.Pids = 60
	_, r := b.start(t, spec)
	waitLine(t, r, "ready\n")
	if s, err := b.Stats("app"); err != nil || s.Pids < 55 {
		t.Errorf("got %d processes, %v; want the limit reached", s.Pids, err)
	}
	if err := b.Signal("app", syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit := b.wait(t, "app"); exit.Code != 143 {
		t.Errorf("got %+v; want it ended", exit)
	}
	if left := b.tree.pids("app"); len(left) > 0 {
		t.Errorf("got processes %v; want none", left)
	}
}

// TestInitPosture has the init be as confined as its app, hold nothing and
// need no memory.
func TestInitPosture(t *testing.T) { eachKind(t, testInitPosture) }

func testInitPosture(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	app, r := b.start(t, b.spec("app", "sleep"))
	waitLine(t, r, "ready\n")
	status, _ := b.exec(t, "app", "cat", "/proc/1/status")
	for _, want := range []string{
		"Name:\tinit\n", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000",
		"NoNewPrivs:\t1", "Seccomp:\t2", "Uid:\t2000\t2000", "Threads:\t1\n",
	} {
		if !strings.Contains(status, want) {
			t.Errorf("got no %q in\n%s", want, status)
		}
	}
	if out, _ := b.exec(t, "app", "ls", "/proc/1/fd"); out != "0\n1\n2\n" {
		t.Errorf("got descriptors %q; want the standard ones", out)
	}
	if out, _ := b.exec(t, "app", "cat", "/proc/1/cmdline"); strings.TrimRight(out, "\x00") != contract.Init {
		t.Errorf("got %q; want no argument that the app has too", out)
	}
	dir := filepath.Join("/proc", strconv.Itoa(app.PID))
	var kB string
	memory, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	for line := range strings.Lines(string(memory)) {
		if after, ok := strings.CutPrefix(line, "Anonymous:"); ok {
			kB = strings.TrimSpace(after)
		}
	}
	if err != nil || kB != "4 kB" && kB != "8 kB" && kB != "12 kB" {
		t.Errorf("got %q of memory, %v; want a page of stack, or up to three where arguments and environment lie on others", kB, err)
	}
}
