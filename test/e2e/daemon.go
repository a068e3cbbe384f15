package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// inNewBoot makes a command run as it would after a boot of the machine: no
// process of before is there, and mounts end with it. The boot's ID stays what
// it was: hiding a file of /proc would forbid containers theirs. The command
// itself is the first process of its PID namespace, so that all end when it is
// killed.
func inNewBoot(cmd *exec.Cmd) *exec.Cmd {
	own := exec.Command("sh", append([]string{"-c", `mount -t proc proc /proc && exec "$@"`, "sh"}, cmd.Args...)...)
	own.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	return own
}

// WithMounts makes a command run in its own mount namespace, after a shell script that mounts something.
func WithMounts(script string, cmd *exec.Cmd) *exec.Cmd {
	own := exec.Command("sh", append([]string{"-ec", script + "\n" + `exec "$@"`, "sh"}, cmd.Args...)...)
	own.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return own
}

// StartDaemonWithMounts is StartDaemon, with Daemon.Mounts.
func StartDaemonWithMounts(t testing.TB, binary, script string, flags ...string) *Daemon {
	t.Helper()
	d := newDaemon(t, binary, flags...)
	d.Mounts = script
	t.Cleanup(d.Destroy)
	d.Start()
	return d
}

// NeedBinary skips a test where the built daemon cannot be driven.
func NeedBinary(t testing.TB) string {
	t.Helper()
	binary := os.Getenv("CUPOLA")
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" || binary == "" {
		t.Skip("needs CUPOLA_TEST_ROOT=1, root, and CUPOLA=the built binary: run make e2e")
	}
	return binary
}

// Daemon is a running `cupola serve`.
type Daemon struct {
	T      testing.TB
	Binary string
	Dir    string
	Addr   string // host:port of the HTTP listener
	Flags  []string
	Cmd    *exec.Cmd
	Log    *LogBuffer
	Admin  *AdminSession
	// Rebooted is a daemon for which the machine has booted since the data
	// directory was last in use.
	Rebooted bool
	// Mounts is a shell script that runs before each daemon, in a mount namespace that only it and its containers have.
	Mounts string
}

// LogBuffer gathers what the daemon logs.
type LogBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *LogBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *LogBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// On is the same daemon, for a subtest to use.
func (d *Daemon) On(t testing.TB) *Daemon {
	other := *d
	other.T = t
	return &other
}

// AdminPassword is the admin's password at each daemon.
const AdminPassword = "a-password-for-tests"

// StartDaemon runs a daemon with flags on a new directory, and takes all
// of it down when the test ends.
func StartDaemon(t testing.TB, binary string, flags ...string) *Daemon {
	t.Helper()
	d := newDaemon(t, binary, flags...)
	t.Cleanup(d.Destroy)
	d.Start()
	return d
}

func newDaemon(t testing.TB, binary string, flags ...string) *Daemon {
	t.Helper()
	return &Daemon{T: t, Binary: binary, Dir: NewDir(t), Addr: "127.0.0.1:0", Flags: flags, Log: &LogBuffer{}, Admin: &AdminSession{}}
}

// DaemonDir begins the names of daemons' directories.
const DaemonDir = "cupola-e2e-"

// NewDir makes a data directory. Containers reach their roots through it,
// so it can't be one of t.TempDir, which is 0700 above.
func NewDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", DaemonDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

var apiLine = regexp.MustCompile(`API +http://[^:]+:(\d+)`)

// Start starts the daemon; after the first time, on the same port.
func (d *Daemon) Start() {
	d.T.Helper()
	flags := []string{"serve", "--data-dir", d.Dir, "--http", d.Addr, "--https", "off", "--allow-loopback", "--admin-password", AdminPassword}
	// As on a machine whose root has this umask by a rule of hardening.
	d.Cmd = exec.Command("/bin/sh", append([]string{"-c", `umask 077 && exec "$@"`, "sh", d.Binary}, append(flags, d.Flags...)...)...)
	if d.Rebooted {
		d.Cmd = inNewBoot(d.Cmd)
	}
	if d.Mounts != "" {
		d.Cmd = WithMounts(d.Mounts, d.Cmd)
	}
	out, err := d.Cmd.StdoutPipe()
	if err != nil {
		d.T.Fatal(err)
	}
	d.Cmd.Stderr = d.Log
	d.Cmd.WaitDelay = time.Minute
	if err := d.Cmd.Start(); err != nil {
		d.T.Fatal(err)
	}
	port := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := apiLine.FindStringSubmatch(lines.Text()); m != nil {
				port <- m[1]
			}
		}
		close(port)
	}()
	select {
	case p, ok := <-port:
		if !ok {
			d.T.Fatalf("the daemon did not start:\n%s", d.Log)
		}
		d.Addr = "127.0.0.1:" + p
	case <-time.After(2 * time.Minute): // emulated processors take their time
		d.T.Fatalf("the daemon was not ready after 2 minutes:\n%s", d.Log)
	}
}

// Kill ends the daemon as a power cut would.
func (d *Daemon) Kill() {
	d.Cmd.Process.Kill()
	if err := d.Cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
		d.T.Errorf("the daemon was killed, and a process that it started goes on and keeps its standard error open")
	}
}

// Destroy stops the daemon when its test ends. It fails a test that left
// something, and shows the log of one that failed.
func (d *Daemon) Destroy() {
	if d.T.Failed() {
		d.T.Logf("the daemon's log:\n%s", d.Log)
	}
	for _, problem := range d.stop() {
		d.T.Error(problem)
	}
}

// stop kills the daemon, cleans up after it, and returns what went wrong or was
// left.
func (d *Daemon) stop() (problems []string) {
	d.Kill()
	if out, err := exec.Command(d.Binary, "cleanup", "--data-dir", d.Dir).CombinedOutput(); err != nil {
		problems = append(problems, fmt.Sprintf("cupola cleanup: %v\n%s", err, out))
	}
	problems = append(problems, leaked(d.Binary, d.Dir)...)
	if err := os.RemoveAll(d.Dir); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

// Run runs cupola with the daemon as its target.
func (d *Daemon) Run(args ...string) (string, error) {
	cmd := exec.Command(d.Binary, args...)
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+d.Addr, "CUPOLA_PASSWORD="+AdminPassword)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// AdminSession is the admin's, kept for as long as its token is surely good: a
// password takes longer to check than most of what is asked.
type AdminSession struct {
	mu     sync.Mutex
	client *Client
	since  time.Time
}

// Client is a client of the daemon's API, as admin.
func (d *Daemon) Client() *Client {
	d.T.Helper()
	s := d.Admin
	s.mu.Lock()
	defer s.mu.Unlock()
	if api := "http://" + d.Addr; s.client == nil || s.client.API != api || time.Since(s.since) > 5*time.Minute {
		c, err := Login(context.Background(), api, "admin", AdminPassword)
		if err != nil {
			d.T.Fatal(err)
		}
		s.client, s.since = c, time.Now()
	}
	return s.client
}

// API makes a call and decodes its answer.
func (d *Daemon) API(method, path string, body any, out any) {
	d.T.Helper()
	if err := d.Client().Call(context.Background(), method, path, body, out); err != nil {
		d.T.Fatalf("%s %s: %v", method, path, err)
	}
}

// Eventually waits until f gives "", and fails with what it gave last. within is
// no claim, but ends a test that hangs. A busy machine gets three times as long.
func Eventually(t testing.TB, within time.Duration, f func() string) {
	t.Helper()
	deadline := time.Now().Add(3 * within)
	for {
		problem := f()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", 3*within, problem)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// Example is the directory of a sample app.
func Example(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(Repository(t), "examples", name)
}

// BuiltExample is a copy of an example in which its build.sh ran, with arguments.
func BuiltExample(t testing.TB, name string, arguments ...string) string {
	t.Helper()
	built := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(built, os.DirFS(Example(t, name))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", append([]string{"build.sh"}, arguments...)...)
	cmd.Dir = built
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build.sh: %v\n%s", err, out)
	}
	return built
}
