package container

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/runtime/network"

	"golang.org/x/sys/unix"
)

// TestMain lets a test run this program again as a daemon to be killed.
func TestMain(m *testing.M) {
	if text := os.Getenv("CONTAINER_TEST_DAEMON"); text != "" {
		var d daemon
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			err = d.run()
			fmt.Println("daemon:", err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// daemon is a process that uses an Engine and a Network and is killed meanwhile.
type daemon struct {
	Engine  Config
	Network network.Config
	Rootfs  string
	Mark    string // an argument of every process it starts
	Once    bool   // start one container that ends by SIGTERM, and wait
	FIFO    string // its output
}

func (d daemon) run() error {
	e, err := New(d.Engine)
	if err != nil {
		return err
	}
	b := &bench{Engine: e, cfg: d.Engine, rootfs: d.Rootfs}
	if d.Once {
		return d.once(b)
	}
	n, err := network.New(d.Network)
	if err != nil {
		return err
	}
	errs := make(chan error)
	for worker := range 2 {
		go func() {
			for round := 0; ; round++ {
				if err := d.cycle(b, n, fmt.Sprintf("%s-w%d-%d", d.Mark, worker, round)); err != nil {
					errs <- err
				}
			}
		}()
	}
	fmt.Println("ready")
	return <-errs
}

func (d daemon) once(b *bench) error {
	out, err := os.OpenFile(d.FIFO, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	spec := b.spec("app", "catch")
	spec.Stdout = out
	if _, err := b.Start(context.Background(), spec); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

func (d daemon) cycle(b *bench, n *network.Network, id string) error {
	ctx := context.Background()
	a, err := n.Acquire(ctx, id)
	if err != nil {
		return err
	}
	everywhere := []network.Range{{From: netip.MustParseAddr("1.0.0.0"), To: netip.MustParseAddr("9.255.255.255")}}
	policy := network.Policy{Address: a.Address, Egress: []network.Rule{{Protocol: "all", Destinations: everywhere}}}
	if err := n.Set(ctx, []network.Policy{policy}); err != nil {
		return err
	}
	spec := b.spec(id, "sleep", d.Mark)
	spec.NetNS = a.NetNS
	if _, err := b.Start(ctx, spec); err != nil {
		return err
	}
	if _, err := b.Exec(ctx, id, Process{Args: []string{"/bin/probe", "sleep", d.Mark}, UID: 2000}, Stdio{}); err != nil {
		return err
	}
	if err := b.Remove(ctx, id); err != nil {
		return err
	}
	return n.Release(ctx, id)
}

// launch starts d and returns when it is ready. kill ends it as kill -9 does.
func (d daemon) launch(t *testing.T) (kill func()) {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{d.Mark}
	cmd.Env = append(os.Environ(), "CONTAINER_TEST_DAEMON="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// What a killed daemon leaves goes to the machine's first process, and not to
	// this one, which an Engine has made a child subreaper.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		rest, _ := io.ReadAll(lines)
		t.Fatalf("got %q, %v, %s; want ready", line, err, rest)
	}
	var rest []byte
	read := make(chan struct{})
	go func() { rest, _ = io.ReadAll(lines); close(read) }()
	return func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
		if len(rest) > 0 {
			t.Errorf("the daemon said %s", rest)
		}
	}
}

func testNetwork(dir string) network.Config {
	var r [2]byte
	_, _ = rand.Read(r[:])
	name := strings.ToLower(rand.Text()[:5])
	return network.Config{
		Dir: dir, Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128 + r[0]%64, r[1] &^ 3, 0}), 22),
		Table: "cupolatest-" + name, LinkPrefix: "d" + name,
	}
}

// TestKilledDaemonLeaksNothing kills a daemon at random moments while it starts
// and removes containers, and has the next one find all that is left.
func TestKilledDaemonLeaksNothing(t *testing.T) { eachKind(t, testKilledDaemonLeaksNothing) }

func testKilledDaemonLeaksNothing(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	base := filepath.Dir(b.rootfs)
	d := daemon{Engine: b.cfg, Network: testNetwork(filepath.Join(base, "net")), Rootfs: b.rootfs, Mark: "mark" + rand.Text()}
	n, err := network.New(d.Network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Teardown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		kill := d.launch(t)
		pause(t)
		kill()
		if n, err = network.New(d.Network); err != nil {
			t.Fatal(err)
		}
		b.Engine = b.reopen(t)
		clean(t, b, n)
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() string { return leftovers(t, d) })
	}
}

func pause(t *testing.T) {
	ms, err := rand.Int(rand.Reader, big.NewInt(120))
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Duration(ms.Int64()) * time.Millisecond)
}

func clean(t *testing.T, b *bench, n *network.Network) {
	t.Helper()
	states, err := b.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		if err := b.Remove(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
	}
	ids, err := n.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := n.Release(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

func eventually(t *testing.T, left func() string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		what := left()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after half a minute there is still: %s", what)
		}
	}
}

// leftovers looks at the kernel itself for what d may have left.
func leftovers(t *testing.T, d daemon) string {
	var found []string
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, filepath.Dir(d.Rootfs)) && !strings.Contains(line, "/state/sys ") && !strings.Contains(line, "/state/dev ") && !strings.Contains(line, "/state/helper ") {
			found = append(found, "mount "+line)
		}
	}
	for _, pattern := range []string{
		"/sys/fs/cgroup/*/" + d.Engine.CgroupParent + "/*/tasks", "/sys/fs/cgroup/" + d.Engine.CgroupParent + "/*/cgroup.procs",
		filepath.Join(d.Engine.Dir, "containers", "*"),
		filepath.Join(d.Network.Dir, "ids", "*"), filepath.Join(d.Network.Dir, "ns", "*"),
	} {
		paths, _ := filepath.Glob(pattern)
		found = append(found, paths...)
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Name, d.Network.LinkPrefix) {
			found = append(found, "link "+l.Name)
		}
	}
	return strings.Join(append(found, marked(d.Mark)...), " ")
}

// marked are the processes that have mark as an argument.
func marked(mark string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && bytes.Contains(data, []byte(mark)) {
			found = append(found, f+" "+string(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// TestAppOutlivesDaemon kills the daemon under a container, which goes on and
// writes; the next one reads it all and learns how it ends.
func TestAppOutlivesDaemon(t *testing.T) { eachKind(t, testAppOutlivesDaemon) }

func testAppOutlivesDaemon(t *testing.T, kind Kind) {
	for name, old := range map[string]bool{"this kernel": false, "before Linux 6.15": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, kind)
			b.cfg.NoPIDFDInfo = old
			outliveDaemon(t, b)
		})
	}
}

func outliveDaemon(t *testing.T, b *bench) {
	fifo := filepath.Join(filepath.Dir(b.rootfs), "out")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	d := daemon{Engine: b.cfg, Rootfs: b.rootfs, Once: true, FIFO: fifo, Mark: "mark" + rand.Text()}
	d.launch(t)()
	second := b.reopen(t)
	states, err := second.List()
	if err != nil || len(states) != 1 || !states[0].Alive {
		t.Fatalf("got %+v, %v; want the app alive", states, err)
	}
	out, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	waitLine(t, out, "ready\n")
	if err := second.Signal("app", syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitLine(t, out, "bye\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begun := time.Now()
	exit, err := second.Wait(ctx, "app")
	if took := time.Since(begun); took >= reapTimeout {
		t.Errorf("its end was seen after %s", took)
	}
	if _, deaf := openConnector(); deaf != nil && !exit.Known {
		t.Skip("no process connector outside the machine's first namespaces:", deaf)
	}
	if want := (Exit{Code: 7, Known: true}); err != nil || exit != want {
		t.Errorf("got %+v, %v; want %+v", exit, err, want)
	}
}
