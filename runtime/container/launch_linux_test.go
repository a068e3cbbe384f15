package container

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/runtime/container/starter"
	"cupola/runtime/container/starter/program"

	"golang.org/x/sys/unix"
)

// faulty replaces the programs that start containers by one that panics or hangs
// for containers of that name, and is the real one for others.
func (b *bench) faulty(t *testing.T, log io.Writer) {
	t.Helper()
	b.cfg.Starter, b.cfg.Launcher = faultyProgram(t, program.Starter), faultyProgram(t, program.Launch)
	b.cfg.StartTimeout, b.cfg.Log = time.Second, slog.New(slog.NewTextHandler(log, nil))
	b.Engine = b.reopen(t)
}

// faultyProgram makes the faulty one beside the program of that name.
func faultyProgram(t *testing.T, name string) string {
	t.Helper()
	dir := tempDir(t)
	build(t, "./testdata/starter", filepath.Join(dir, "faulty"))
	real, err := program.Open(name, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", real.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "starter"), text, 0o700); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "faulty")
}

// TestStartThatPanicsOrHangsFailsAlone has starters panic and hang, with children
// of each kind that libcontainer makes, while another container answers.
func TestStartThatPanicsOrHangsFailsAlone(t *testing.T) {
	eachKind(t, testStartThatPanicsOrHangsFailsAlone)
}

func testStartThatPanicsOrHangsFailsAlone(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	log := &safeBuffer{}
	b.faulty(t, log)
	_, r := b.start(t, b.spec("app", "sleep"))
	waitLine(t, r, "ready\n")
	before := childrenOf(t)
	for id, want := range map[string]string{
		"panic": "starter crashed: exit status 2: panic: send on closed channel",
		"hang":  "it did not start within 1s",
		"quit":  "starter crashed: exit status 0: ",
	} {
		for _, start := range []func() error{
			func() error { _, err := b.Start(t.Context(), b.spec(id, "echo", "x")); return err },
			func() error {
				_, err := b.launch(t.Context(), starter.Request{ID: id}, Stdio{}, nil)
				return err
			},
		} {
			if err := start(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v; want %q", id, err, want)
			}
		}
		// The app's container is alive and can be entered.
		b.execEcho(t, "app")
	}
	if !strings.Contains(log.String(), "main.breakDown") {
		t.Errorf("got the log %s; want the panic's stack", log)
	}
	if after := childrenOf(t); !slices.Equal(after, before) {
		t.Errorf("got children %q; want %q", after, before)
	}
	states, err := b.List()
	if err != nil || len(states) != 1 || !states[0].Alive {
		t.Errorf("got %+v, %v; want the app alone", states, err)
	}
}

// TestStartKilledAtAnyMomentLeavesNothing cuts starts and execs off after ever
// longer times, so that each of libcontainer's steps is cut off at some time.
func TestStartKilledAtAnyMomentLeavesNothing(t *testing.T) {
	eachKind(t, testStartKilledAtAnyMomentLeavesNothing)
}

func testStartKilledAtAnyMomentLeavesNothing(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	_, r := b.start(t, b.spec("app", "sleep"))
	waitLine(t, r, "ready\n")
	before, running := childrenOf(t), b.tree.pids("app")
	failed := 0
	for n := range 60 {
		b.Engine.start.timeout = time.Duration(n) * time.Millisecond / 2
		if b.Engine.direct != nil {
			b.Engine.direct.timeout = time.Duration(n) * time.Millisecond / 8 // it is faster
		}
		id := "cut-" + strconv.Itoa(n)
		if _, err := b.Start(t.Context(), b.spec(id, "sleep")); err != nil {
			failed++
		} else if err := b.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if x, err := b.Exec(t.Context(), "app", Process{Args: []string{"/bin/probe", "sleep"}}, Stdio{}); err != nil {
			failed++
		} else if err := x.end(t); err != nil {
			t.Fatal(err)
		}
	}
	if failed < 20 {
		t.Errorf("%d starts were cut off; the test wants longer ones", failed)
	}
	if after := childrenOf(t); !slices.Equal(after, before) {
		t.Errorf("got children %q; want %q", after, before)
	}
	states, err := b.List()
	if err != nil || len(states) != 1 || !states[0].Alive {
		t.Errorf("got %+v, %v; want the app alone", states, err)
	}
	if got := b.tree.pids("app"); !slices.Equal(got, running) {
		t.Errorf("got processes %v in the app's cgroup; want %v", got, running)
	}
}

// TestManyStartsAtOnce starts containers all at once while all processors are
// taken by others.
func TestManyStartsAtOnce(t *testing.T) { eachKind(t, testManyStartsAtOnce) }

func testManyStartsAtOnce(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	const count = 250
	for range 4 {
		hog := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := hog.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = hog.Process.Kill(); _ = hog.Wait() }()
	}
	errs := make(chan error, count)
	for n := range count {
		go func() {
			_, err := b.Start(t.Context(), b.spec("c"+strconv.Itoa(n), "sleep"))
			errs <- err
		}()
	}
	for range count {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	states, err := b.List()
	alive := 0
	for _, s := range states {
		if s.Alive {
			alive++
		}
	}
	if err != nil || alive != count {
		t.Errorf("got %d containers alive, %v; want %d", alive, err, count)
	}
}

// TestReapsLeaveOthersChildren runs programs by os/exec while starts fail.
func TestReapsLeaveOthersChildren(t *testing.T) { eachKind(t, testReapsLeaveOthersChildren) }

func testReapsLeaveOthersChildren(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	b.faulty(t, io.Discard)
	ended := make(chan error)
	go func() {
		var wrong error
		for range 300 {
			var exit *exec.ExitError
			if err := exec.Command("sh", "-c", "exit 7").Run(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
				wrong = fmt.Errorf("got %w; want exit 7", err)
			}
		}
		ended <- wrong
	}()
	for {
		_, _ = b.Start(t.Context(), b.spec("panic", "echo", "x"))
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

func (x *Exec) end(t *testing.T) error {
	if err := x.Signal(unix.SIGKILL); err != nil {
		return err
	}
	_, err := x.Wait(t.Context())
	return err
}

func (b *bench) execEcho(t *testing.T, id string) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	x, err := b.Exec(t.Context(), id, Process{Args: []string{"/bin/probe", "echo", "hello"}, UID: 2000}, Stdio{Out: in, Err: in})
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	waitLine(t, out, "hello\n")
	if exit, err := x.Wait(t.Context()); err != nil || exit.Code != 0 {
		t.Errorf("got %+v, %v; want exit 0", exit, err)
	}
}

// childrenOf are the children of this process, with their names.
func childrenOf(t *testing.T) (all []string) {
	t.Helper()
	for _, name := range dirsIn("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && s.parent == os.Getpid() {
			comm, _ := os.ReadFile("/proc/" + name + "/comm")
			all = append(all, name+" "+strings.TrimSpace(string(comm)))
		}
	}
	return all
}

// safeBuffer is a buffer that many write to.
type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(p)
}
