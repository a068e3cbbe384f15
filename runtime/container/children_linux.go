package container

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sweepTimeout bounds the wait for killed processes to end. What the kernel does
// not let go sooner is looked for again with the next start that fails.
const sweepTimeout = 2 * time.Second

// sweepTick is how often is looked whether they have ended.
const sweepTick = 5 * time.Millisecond

// children are the processes that starters left to this process, which is a
// child subreaper: each container's first one, and those that were started
// next to it. They are reaped by their PID or their starter's process group
// alone, so that nothing is taken from os/exec.
type children struct {
	mu     sync.Mutex
	held   map[int]*process
	groups []int // of starters that failed, in which a process may be left
}

// family is one for all Engines, as children are the whole process's.
var family = &children{held: map[int]*process{}}

// claim holds a child of a starter that still runs, so that the sweep after
// another start that fails leaves it alone. Watch it when the starter has ended:
// only then it is reaped here.
func (c *children) claim(pid int) (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := holdProcess(pid, 0)
	if err != nil {
		return nil, err
	}
	c.held[pid] = p
	p.forget = func() { c.forget(p) }
	return p, nil
}

func (c *children) forget(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[p.pid] == p {
		delete(c.held, p.pid)
	}
}

// sweep kills and reaps the processes that a failed starter of that process
// group left behind. Its first processes are in the group; the last one is an
// unclaimed session leader in the container's pid namespace.
func (c *children) sweep(group int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups = append(c.groups, group)
	late := time.NewTimer(sweepTimeout)
	defer late.Stop()
	tick := time.NewTicker(sweepTick)
	defer tick.Stop()
	for {
		c.groups = slices.DeleteFunc(c.groups, groupEnded)
		if len(c.groups) == 0 && !c.reapStraysLocked(unix.SIGKILL) {
			return
		}
		select {
		case <-tick.C:
		case <-late.C:
			return
		}
	}
}

// groupEnded reaps the children in a process group and reports whether none is
// left.
func groupEnded(group int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PGID, group, &info, unix.WEXITED|unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return true
		case info.Signo == 0:
			return false
		}
	}
}

// reap reaps the strays that have ended.
func (c *children) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reapStraysLocked(0)
}

// reapStraysLocked signals strays, reaps those that have ended and reports
// whether any is left.
func (c *children) reapStraysLocked(sig unix.Signal) (left bool) {
	for _, pid := range c.straysLocked() {
		_ = unix.Kill(pid, sig)
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG, nil)
		left = left || errors.Is(err, unix.EINTR) || err == nil && info.Signo == 0
	}
	return left
}

// straysLocked returns unclaimed children that lead a session in another pid
// namespace.
func (c *children) straysLocked() (pids []int) {
	self := os.Getpid()
	ours, _ := os.Readlink("/proc/self/ns/pid")
	for _, name := range dirsIn("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil || c.held[pid] != nil {
			continue
		}
		if s, err := readStat(pid); err != nil || s.parent != self || s.session != pid {
			continue
		}
		if ns, err := os.Readlink("/proc/" + name + "/ns/pid"); err == nil && ns != ours {
			pids = append(pids, pid)
		}
	}
	return pids
}
