package cell

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cupola/runtime/cell/conformance"
	"cupola/runtime/container"
	"cupola/runtime/lrp"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// childVar holds a world when this test binary must act as a daemon in it.
const childVar = "CUPOLA_CELL_CHILD"

func TestMain(m *testing.M) {
	if place := os.Getenv(childVar); place != "" {
		if err := beDaemon(place); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// order is what a test asks of a daemon.
type order struct {
	Start *lrp.Container
	Stop  string
	List  bool
	Files []lrp.File // for the container For
	For   string
}

// word is what a daemon says.
type word struct {
	Adopted    bool
	Event      *lrp.Event
	Line       string
	Containers []lrp.ContainerStatus
}

// beDaemon runs a cell on the world until standard input ends.
func beDaemon(place string) error {
	var w world
	if err := json.Unmarshal([]byte(place), &w); err != nil {
		return err
	}
	l, err := w.open()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(x word) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(os.Stdout).Encode(x)
	}
	cfg := l.config(&conformance.Recorder{})
	cfg.Events = func(e lrp.Event) { say(word{Event: &e}) }
	cfg.Logs = func(line lrp.LogLine) { say(word{Line: line.Target.Source + ": " + string(line.Text)}) }
	c, err := New(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	<-c.Adopted()
	say(word{Adopted: true})
	orders := json.NewDecoder(os.Stdin)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			cancel()
			return <-ended
		}
		switch {
		case o.Start != nil:
			c.Start(*o.Start)
		case o.Stop != "":
			c.Stop(o.Stop)
		case o.For != "":
			if err := c.setFiles(o.For, o.Files); err != nil {
				say(word{Line: "SetFiles: " + err.Error()})
			}
		case o.List:
			say(word{Containers: c.Containers()})
		}
	}
}

// child is a daemon in another process.
type child struct {
	conformance.Recorder
	cmd    *exec.Cmd
	orders io.WriteCloser
	lists  chan []lrp.ContainerStatus
	heard  chan struct{} // closed when it says nothing any more
}

// spawn starts a daemon and waits until it has adopted.
func (w world) spawn(t testing.TB) *child {
	t.Helper()
	place, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command("/proc/self/exe"), lists: make(chan []lrp.ContainerStatus, 1), heard: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childVar+"="+string(place))
	c.cmd.Stderr = os.Stderr
	c.orders, err = c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// What a killed daemon leaves goes to the machine's first process, and not to
	// this one, which an Engine has made a child subreaper.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	adopted := make(chan struct{})
	go c.hear(said, adopted)
	select {
	case <-adopted:
	case <-c.heard:
		t.Fatalf("daemon ended: %v", c.cmd.Wait())
	case <-time.After(2 * time.Minute):
		t.Fatal("daemon did not adopt in time")
	}
	return c
}

func (c *child) hear(said io.Reader, adopted chan struct{}) {
	defer close(c.heard)
	lines := bufio.NewScanner(said)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var x word
		if json.Unmarshal(lines.Bytes(), &x) != nil {
			continue // its last word, cut off
		}
		switch {
		case x.Adopted:
			close(adopted)
		case x.Event != nil:
			c.Event(*x.Event)
		case x.Line != "":
			c.Line(x.Line)
		default:
			c.lists <- x.Containers
		}
	}
}

func (c *child) order(t testing.TB, o order) {
	t.Helper()
	if err := json.NewEncoder(c.orders).Encode(o); err != nil {
		t.Error(err)
	}
}

func (c *child) list(t testing.TB) []lrp.ContainerStatus {
	t.Helper()
	c.order(t, order{List: true})
	select {
	case l := <-c.lists:
		return l
	case <-time.After(2 * time.Minute):
		t.Fatal("daemon did not list in time")
		return nil
	}
}

// kill ends the daemon as kill -9 does.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.heard
	_ = c.cmd.Wait() // it was killed
}

// holds reports whether the daemon has a pidfd of a process.
func (c *child) holds(t testing.TB, pid int) bool {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		info, err := os.ReadFile(file) // an error: it is closed by now
		return err == nil && strings.Contains(string(info), fmt.Sprintf("\nPid:\t%d\n", pid))
	})
}

// end lets the daemon stop all, and end.
func (c *child) end(t testing.TB) {
	t.Helper()
	conformance.Eventually(t, "all containers end", func() bool {
		all := c.list(t)
		for _, s := range all {
			c.order(t, order{Stop: s.GUID})
		}
		return len(all) == 0
	})
	c.orders.Close()
	<-c.heard
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// get asks the app of a container.
func get(t testing.TB, address string) string {
	t.Helper()
	resp, err := http.Get("http://" + address + ":8080/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// wantNothingLeft looks at the world after all daemons have ended.
func (w world) wantNothingLeft(t testing.TB) {
	t.Helper()
	l, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	l.tearDown(t)
}

// counts returns the numbers that the app has counted to in a log.
func counts(lines []string) []int {
	var all []int
	for _, line := range lines {
		var n int
		if _, err := fmt.Sscanf(line, "APP/PROC/WEB: count %d", &n); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// A killed daemon's container serves on, and the next daemon has it: the same
// process, its log without a hole, its end. The next one starts containers with an
// engine of the other kind.
func TestRealAdoption(t *testing.T) { eachKind(t, testRealAdoption) }

func testRealAdoption(t *testing.T, kind container.Kind) {
	w := newWorld(t, kind)
	t.Cleanup(func() { w.wantNothingLeft(t) })
	spec := w.instance("g", "serve")
	spec.Checks.Liveness = []lrp.Check{{Type: lrp.CheckHTTP, Port: 8080, Path: "/"}}
	spec.Action = lrp.Codependent(spec.Action, lrp.Run{Path: "/home/vcap/app/app", Args: []string{"sleep", "1h"}}.Action())
	first := w.spawn(t)
	first.order(t, order{Start: &spec})
	address := first.Find(t, "g", lrp.EventReady).Address
	first.WantLine(t, "count 20")
	// Of a process that is being started when its daemon dies, the next one knows
	// nothing: it gives the container up.
	w.wantProcess(t, "g", "action.0")
	w.wantProcess(t, "g", "action.1")
	started := get(t, address)
	first.kill()
	<-time.After(100 * time.Millisecond) // the app writes while nothing reads
	if got := get(t, address); got != started {
		t.Errorf("got process of %s; want that of %s", got, started)
	}
	if w.Kind = container.Launch; kind == container.Launch {
		w.Kind = container.Runc
	}
	second := w.spawn(t)
	if got := second.list(t); len(got) != 1 || got[0].Phase != lrp.PhaseRunning || !got[0].Ready || got[0].Address != address {
		t.Errorf("got %+v; want the running container", got)
	}
	conformance.Eventually(t, "output goes on", func() bool { return len(counts(second.Output())) > 10 })
	before, after := counts(first.Output()), counts(second.Output())
	// What the first daemon had read but not told is lost with it: a line or two.
	if hole := after[0] - before[len(before)-1]; hole > 3 {
		t.Errorf("got a hole of %d lines in the output", hole)
	}
	if got := get(t, address); got != started {
		t.Errorf("got process of %s; want that of %s", got, started)
	}
	second.order(t, order{Stop: "g"})
	if got := second.Find(t, "g", lrp.EventExited).Exit; !got.Stopped {
		t.Errorf("got %+v; want stopped", got)
	}
	second.end(t)
}

// wantProcess waits until the process of a container's step is on record, and
// returns it.
func (w world) wantProcess(t testing.TB, guid, at string) (pid int) {
	t.Helper()
	conformance.Eventually(t, "a process of "+at, func() bool {
		rec, err := readRecord(filepath.Join(w.path("cell"), guid))
		if err == nil && rec.Steps[at] != nil {
			pid = rec.Steps[at].PID
		}
		return pid != 0
	})
	return pid
}

// firstPIDs is the machine's own pid namespace, of which the number is fixed.
const firstPIDs = "pid:[4026531836]"

// How adopted processes end is known: a task that ends well has succeeded.
func TestRealAdoptedExits(t *testing.T) { eachKind(t, testRealAdoptedExits) }

func testRealAdoptedExits(t *testing.T, kind container.Kind) {
	w := newWorld(t, kind)
	t.Cleanup(func() { w.wantNothingLeft(t) })
	for name, old := range map[string]bool{"this kernel": false, "before Linux 6.15": true} {
		t.Run(name, func(t *testing.T) {
			if pids, _ := os.Readlink("/proc/self/ns/pid"); old && pids != firstPIDs {
				t.Skip("before Linux 6.15 the kernel tells only in its first pid namespace")
			}
			w.NoPIDFDInfo = old
			adoptExits(t, w)
		})
	}
}

func adoptExits(t *testing.T, w world) {
	idle := lrp.Serial(do("exit", "0").Action(), do("term").Action())
	crash := w.instance("crash", "sleep", "1h")
	tests := []struct {
		spec lrp.Container
		step string
		sig  syscall.Signal
		want lrp.Exit
	}{
		{realTask(w, "task", do("term").Action()), "action", syscall.SIGTERM, lrp.Exit{}},
		{realTask(w, "beside", idle), "action.1", syscall.SIGTERM, lrp.Exit{}},
		{realTask(w, "killed", do("term").Action()), "action", syscall.SIGKILL, lrp.Exit{Code: 137, Failed: true, Reason: "TASK: Exited with status 137"}},
		{crash, "action", syscall.SIGTERM, lrp.Exit{Code: 143, Failed: true, Reason: "APP/PROC/WEB: Exited with status 143"}},
	}
	first := w.spawn(t)
	pids := make([]int, len(tests))
	for n, tt := range tests {
		first.order(t, order{Start: &tt.spec})
		pids[n] = w.wantProcess(t, tt.spec.GUID, tt.step)
	}
	conformance.Eventually(t, "tasks are ready", func() bool { return strings.Count(strings.Join(first.Output(), "\n"), "waiting") == 3 })
	first.kill()
	second := w.spawn(t)
	for n, tt := range tests {
		// It adopts containers, then looks for their further processes: one that
		// ends before it is found may have been reaped.
		conformance.Eventually(t, tt.spec.GUID+" is held", func() bool { return second.holds(t, pids[n]) })
		if err := syscall.Kill(pids[n], tt.sig); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range tests {
		got := second.Find(t, tt.spec.GUID, lrp.EventExited).Exit
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.spec.GUID, diff)
		}
	}
	second.end(t)
}

// The end of a container while no daemon ran is reported, and the container cleared away.
func TestRealDeathUnseen(t *testing.T) { eachKind(t, testRealDeathUnseen) }

func testRealDeathUnseen(t *testing.T, kind container.Kind) {
	w := newWorld(t, kind)
	t.Cleanup(func() { w.wantNothingLeft(t) })
	spec := w.instance("g", "exit", "4", "300ms")
	first := w.spawn(t)
	first.order(t, order{Start: &spec})
	first.Find(t, "g", lrp.EventRunning)
	first.kill()
	<-time.After(time.Second)
	second := w.spawn(t)
	// Whether the kernel still tells depends on when init reaped the process.
	got := second.Find(t, "g", lrp.EventExited).Exit
	known := lrp.Exit{Code: 4, Failed: true, Reason: "APP/PROC/WEB: Exited with status 4"}
	unknown := lrp.Exit{Code: -1, Failed: true, Unknown: true, Reason: "APP/PROC/WEB: Exited with unknown status"}
	if got != known && got != unknown {
		t.Errorf("got %+v; want %+v or %+v", got, known, unknown)
	}
	second.end(t)
}

// Twenty daemons killed at random moments of making and clearing away
// containers leave nothing that the last one cannot end. The first has the time
// to make an instance, which outlives them all; it tells how long that takes
// here.
func TestRealKilledAtRandom(t *testing.T) { eachKind(t, testRealKilledAtRandom) }

func testRealKilledAtRandom(t *testing.T, kind container.Kind) {
	w := newWorld(t, kind)
	t.Cleanup(func() { w.wantNothingLeft(t) })
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	var making time.Duration
	for round := range 20 {
		c, began := w.spawn(t), time.Now()
		for n, args := range [][]string{{"serve"}, {"exit", "1"}, {"stage"}, {"sleep", "200ms"}} {
			spec := w.instance(fmt.Sprintf("g%d-%d", round, n), args...)
			spec.Files, spec.OrganizationalUnits = []lrp.File{{Path: "a"}}, []string{"app:a"}
			if args[0] == "sleep" { // beside an idle process
				spec.Action = lrp.Serial(spec.Action, do("exit", "0").Action(), do("sleep", "1h").Action())
			}
			if args[0] == "stage" {
				spec.Kind, spec.ResultFile = lrp.KindTask, "/tmp/result.json"
			}
			c.order(t, order{Start: &spec})
		}
		if round%4 == 3 {
			c.order(t, order{Stop: fmt.Sprintf("g%d-0", round-1)})
		}
		if round == 0 {
			c.Find(t, "g0-0", lrp.EventRunning)
			making = time.Since(began)
		} else {
			<-time.After(time.Duration(random.Int64N(int64(2 * making))))
		}
		c.kill()
	}
	last := w.spawn(t)
	got := last.list(t)
	if !slices.ContainsFunc(got, func(s lrp.ContainerStatus) bool { return s.GUID == "g0-0" }) {
		t.Errorf("got %v; want g0-0, which survived", got)
	}
	t.Logf("%d containers survived, made in %s", len(got), making)
	last.end(t)
}
