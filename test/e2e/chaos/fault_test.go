package chaos

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cupola/test/e2e"
)

// chaosFault is something that goes wrong while tenants work. hit returns when
// the daemon has all that it needs again.
type chaosFault struct {
	name string
	hit  func(*chaos)
}

var chaosFaults = []chaosFault{
	{"kill -9", killed},
	{"power cut", powerCut},
	{"full disk", fullDisk},
	{"kill -9 on a full disk", killedOnFullDisk},
	{"no descriptors", noDescriptors},
	{"slow clients", slowClients},
	{"starts that crash", startsGet(syscall.SIGABRT)},
	{"starts that hang", startsGet(syscall.SIGSTOP)},
	{"panics", panics},
	{"failing system calls", failingCalls},
}

// faultTime is how long a state lasts that tenants work in.
const faultTime = time.Second

func killed(c *chaos) {
	c.d.Kill()
	c.restarts++
	c.d.Start()
}

// powerCut looks at what would be on the disk after a power cut now: a daemon
// on a copy of it has all that was acknowledged, and starts the apps. It runs
// in a PID namespace, where nothing of the first one's runs, as after a boot.
func powerCut(c *chaos) {
	process := c.d.Cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
	known := map[*tenant]memory{}
	for _, t := range c.tenants {
		known[t] = t.remembers()
	}
	disk := c.disk.Copied()
	if err := process.Signal(syscall.SIGCONT); err != nil {
		c.t.Fatal(err)
	}
	with(disk, c, func(d *e2e.Daemon) {
		for t, m := range known {
			t.check(d, m)
		}
		c.answers(d)
	})
}

// with starts a daemon on the disk, and takes both down after use.
func with(l *e2e.LoopDisk, c *chaos, use func(*e2e.Daemon)) {
	c.t.Helper()
	if err := os.Mkdir(l.Mount, 0o711); err != nil {
		c.t.Fatal(err)
	}
	e2e.MustRun(c.t, "mount", "-o", "loop", l.Image, l.Mount)
	defer func() {
		e2e.MustRun(c.t, "umount", l.Mount)
		if err := os.RemoveAll(filepath.Dir(l.Mount)); err != nil {
			c.t.Error(err)
		}
	}()
	d := &e2e.Daemon{T: c.t, Binary: c.d.Binary, Dir: l.Subdirectory(), Addr: "127.0.0.1:0", Log: &e2e.LogBuffer{}, Admin: &e2e.AdminSession{}, Rebooted: true}
	defer d.Destroy()
	d.Start()
	use(d)
}

func fullDisk(c *chaos) {
	c.disk.Fill()
	defer c.disk.Free()
	<-time.After(faultTime)
	c.answers(c.d)
}

func killedOnFullDisk(c *chaos) {
	c.disk.Fill()
	defer c.disk.Free()
	killed(c)
	<-time.After(faultTime)
	c.answers(c.d)
}

// noDescriptors leaves the daemon up to four descriptors more than it has.
func noDescriptors(c *chaos) {
	pid := c.d.Cmd.Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		c.t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		c.t.Fatal(err)
	}
	few := was
	few.Cur = uint64(len(open) + c.rand.IntN(5))
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		c.t.Fatal(err)
	}
	<-time.After(faultTime)
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil); err != nil {
		c.t.Fatal(err)
	}
}

// slowClients sends bodies of which a byte comes now and then to an app.
func slowClients(c *chaos) {
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	for range 300 {
		conn, err := net.Dial("tcp", c.d.Addr)
		if err != nil {
			c.t.Errorf("connect: %v", err)
			return
		}
		open = append(open, conn)
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s.localhost\r\nContent-Length: 1000000\r\n\r\n", bystanderApp)
	}
	for range 5 {
		<-time.After(faultTime / 5)
		open = slices.DeleteFunc(open, func(conn net.Conn) bool {
			_, err := conn.Write([]byte("x"))
			if err != nil {
				conn.Close()
			}
			return err != nil
		})
	}
	c.answers(c.d)
}

// startsGet sends a signal to each program that starts a container while an app
// is pushed, again and again until one was there when it looked: a start is over in some
// milliseconds. After that the app can be pushed.
func startsGet(sig syscall.Signal) func(*chaos) {
	return func(c *chaos) {
		pushed := make(chan struct{})
		var seen atomic.Bool
		until := time.Now().Add(30 * time.Second) // the first start may be long in coming
		go func(until time.Time) {
			defer close(pushed)
			for !seen.Load() && time.Now().Before(until) {
				_, _ = c.d.Run("push", "--name", victimApp, e2e.Example(c.t, "static")) // it may fail, and says why
			}
		}(until)
		var hit []int
		for time.Now().Before(until) {
			for _, pid := range c.starters() {
				if syscall.Kill(pid, sig) != nil {
					continue
				}
				if !seen.Swap(true) {
					until = time.Now().Add(2 * faultTime)
				}
				hit = append(hit, pid)
			}
			<-time.After(2 * time.Millisecond)
		}
		c.answers(c.d)
		for _, pid := range hit {
			_ = syscall.Kill(pid, syscall.SIGCONT) // which one that hangs for good waits 50 s for
		}
		<-pushed
		if len(hit) == 0 {
			c.t.Error("no start was hit")
		}
		c.works()
	}
}

// starters are the programs by which the daemon starts containers now.
func (c *chaos) starters() (pids []int) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", c.d.Cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, task := range tasks {
		children, _ := os.ReadFile(task) // of a thread that has ended there are none
		for _, child := range strings.Fields(string(children)) {
			name, _ := os.ReadFile("/proc/" + child + "/cmdline")
			pid, err := strconv.Atoi(child)
			if err == nil && strings.HasPrefix(string(name), "cupola-starter:") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
