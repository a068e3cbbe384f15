package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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
	c.d.kill()
	c.restarts++
	c.d.start()
}

// powerCut looks at what would be on the disk after a power cut now: a daemon
// on a copy of it has all that was acknowledged, and starts the apps. It runs
// in a PID namespace, where nothing of the first one's runs, as after a boot.
func powerCut(c *chaos) {
	process := c.d.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
	known := map[*tenant]memory{}
	for _, t := range c.tenants {
		known[t] = t.remembers()
	}
	disk := c.disk.copied()
	if err := process.Signal(syscall.SIGCONT); err != nil {
		c.t.Fatal(err)
	}
	disk.with(c, func(d *daemon) {
		for t, m := range known {
			t.check(d, m)
		}
		c.answers(d)
	})
}

// with starts a daemon on the disk, and takes both down after use.
func (l *loopDisk) with(c *chaos, use func(*daemon)) {
	c.t.Helper()
	if err := os.Mkdir(l.mount, 0o711); err != nil {
		c.t.Fatal(err)
	}
	mustRun(c.t, "mount", "-o", "loop", l.image, l.mount)
	defer func() {
		mustRun(c.t, "umount", l.mount)
		if err := os.RemoveAll(filepath.Dir(l.mount)); err != nil {
			c.t.Error(err)
		}
	}()
	d := &daemon{t: c.t, binary: c.d.binary, dir: l.subdirectory(), addr: "127.0.0.1:0", log: &logBuffer{}, admin: &adminSession{}, rebooted: true}
	defer d.destroy()
	d.start()
	use(d)
}

func fullDisk(c *chaos) {
	c.disk.fill()
	defer c.disk.free()
	<-time.After(faultTime)
	c.answers(c.d)
}

func killedOnFullDisk(c *chaos) {
	c.disk.fill()
	defer c.disk.free()
	killed(c)
	<-time.After(faultTime)
	c.answers(c.d)
}

// noDescriptors leaves the daemon four descriptors more than it has.
func noDescriptors(c *chaos) {
	pid := c.d.cmd.Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		c.t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		c.t.Fatal(err)
	}
	few := was
	few.Cur = uint64(len(open) + 4)
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
		conn, err := net.Dial("tcp", c.d.addr)
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
// is pushed. After that the app can be pushed.
func startsGet(sig syscall.Signal) func(*chaos) {
	return func(c *chaos) {
		push := func() (string, error) { return c.d.run("push", "--name", victimApp, example(c.t, "static")) }
		pushed := make(chan struct{})
		go func() {
			defer close(pushed)
			_, _ = push() // it may fail, and says why
		}()
		var hit []int
		until := time.Now().Add(30 * time.Second) // the first start may be long in coming
		for time.Now().Before(until) {
			for _, pid := range c.starters() {
				if syscall.Kill(pid, sig) != nil {
					continue
				}
				if len(hit) == 0 {
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
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", c.d.cmd.Process.Pid))
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

// inNewBoot is a command as it would run after a boot of the machine: no
// process of before is there, and mounts end with it. The boot's ID stays what
// it was: hiding a file of /proc would forbid containers theirs.
func inNewBoot(cmd *exec.Cmd) *exec.Cmd {
	args := []string{"--pid", "--fork", "--mount", "--mount-proc", "--kill-child", "--"}
	return exec.Command("unshare", append(args, cmd.Args...)...)
}
