package logs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// container is the two ends of one process's output.
type container struct {
	stdout, stderr *os.File
	config         Config
	lines          chan string
}

func newContainer(t *testing.T, limit int64) *container {
	t.Helper()
	dir := t.TempDir()
	c := &container{lines: make(chan string, 1000)}
	c.config = Config{Stdout: filepath.Join(dir, "stdout"), Stderr: filepath.Join(dir, "stderr"), Limiter: NewLimiter(limit)}
	c.config.Sink = func(line []byte, stderr bool, _ time.Time) {
		name := "OUT"
		if stderr {
			name = "ERR"
		}
		c.lines <- name + " " + string(line)
	}
	c.stdout, c.stderr = openFIFO(t, c.config.Stdout), openFIFO(t, c.config.Stderr)
	return c
}

func openFIFO(t *testing.T, path string) *os.File {
	t.Helper()
	if err := MakeFIFO(path); err != nil {
		t.Fatal(err)
	}
	w, err := OpenWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// follow starts a Follower; done gets the error of its Run.
func (c *container) follow(t *testing.T, ctx context.Context) (f *Follower, done chan error) {
	t.Helper()
	f, err := Open(c.config)
	if err != nil {
		t.Fatal(err)
	}
	done = make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	return f, done
}

func (c *container) wantLines(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-c.lines:
			if got != w {
				t.Fatalf("got line %q; want %q", got, w)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("got no line; want %q", w)
		}
	}
}

func TestFollower(t *testing.T) {
	c := newContainer(t, unlimited)
	f, done := c.follow(t, t.Context())
	fmt.Fprintln(c.stdout, "one")
	c.wantLines(t, "OUT one")
	fmt.Fprint(c.stderr, "two\r\nthr")
	c.wantLines(t, "ERR two")
	fmt.Fprint(c.stderr, "ee")
	f.Drain()
	f.Drain()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c.wantLines(t, "ERR three")
	if got := f.limiter.Rate(); got != 11 {
		t.Errorf("got rate %d; want 11", got)
	}
}

func TestFollowerTakesUpWhatTheLastOneLeft(t *testing.T) {
	c := newContainer(t, unlimited)
	ctx, cancel := context.WithCancel(t.Context())
	_, done := c.follow(t, ctx)
	fmt.Fprintln(c.stdout, "first")
	c.wantLines(t, "OUT first")
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 900 { // more than a pipe of the usual size holds
		line := fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000))
		fmt.Fprintln(c.stdout, line)
		want = append(want, "OUT "+line)
	}
	f, done := c.follow(t, t.Context())
	f.Drain()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c.wantLines(t, want...)
}

func TestFollowerLimit(t *testing.T) {
	c := newContainer(t, 10)
	f, done := c.follow(t, t.Context())
	fmt.Fprint(c.stdout, "12345\n12345\n1\n2\n3\n")
	c.wantLines(t, "OUT 12345", "OUT 12345", "OUT app instance exceeded log rate limit (10 bytes/sec)")
	f.Drain()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(c.lines) != 0 {
		t.Errorf("got %q; want nothing in the pause", <-c.lines)
	}
}

func TestWriterIsFitForPrograms(t *testing.T) {
	c := newContainer(t, unlimited)
	flags, err := unix.FcntlInt(c.stdout.Fd(), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	if flags&unix.O_NONBLOCK != 0 || flags&unix.O_ACCMODE != unix.O_RDWR {
		t.Errorf("got flags %#o; want O_RDWR and blocking", flags)
	}
	f, done := c.follow(t, t.Context())
	cmd := exec.Command("sh", "-c", "echo out; echo err >&2; echo again >/dev/stdout")
	cmd.Stdout, cmd.Stderr = c.stdout, c.stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	f.Drain()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for range 3 {
		got[<-c.lines]++
	}
	if diff := cmp.Diff(map[string]int{"OUT out": 1, "OUT again": 1, "ERR err": 1}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestOpenNoFIFO(t *testing.T) {
	if _, err := Open(Config{Stdout: filepath.Join(t.TempDir(), "missing")}); err == nil {
		t.Error("got no error for a missing FIFO")
	}
}
