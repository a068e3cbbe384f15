package sshd

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kin is every process that descends from this one. What a program leaves
// behind becomes this process' child, and not that of the container's init, so
// that it ends with the session.
type kin struct {
	stop chan struct{}

	mu  sync.Mutex
	own map[int]bool // children that a session waits for
}

// reapInterval is how often the ended orphans are cleared away.
const reapInterval = 5 * time.Second

// adopt makes this process the parent of its descendants' orphans.
func adopt() *kin {
	k := &kin{own: map[int]bool{}, stop: make(chan struct{})}
	// Without it orphans go to the init, and stay until the container ends.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	go func() {
		tick := time.NewTicker(reapInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				k.reap()
			case <-k.stop:
				return
			}
		}
	}()
	return k
}

func (k *kin) start(cmd *exec.Cmd) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	k.own[cmd.Process.Pid] = true
	return nil
}

// wait waits for the end of cmd, which start began, and of its output.
func (k *kin) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.own, cmd.Process.Pid)
	return err
}

// signal signals the session of cmd, and reports whether it still runs.
func (k *kin) signal(cmd *exec.Cmd, sig syscall.Signal) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.own[cmd.Process.Pid] && unix.Kill(-cmd.Process.Pid, sig) == nil
}

// reap clears ended orphans away.
func (k *kin) reap() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for pid, p := range processes() {
		if p.parent == os.Getpid() && p.ended && !k.own[pid] {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// The times of an end: from SIGHUP to SIGKILL, and from there to giving up on
// what the kernel does not let go.
const (
	grace    = time.Second
	patience = 4 * time.Second
	look     = 20 * time.Millisecond
)

// end ends all descendants.
func (k *kin) end() {
	close(k.stop)
	tick := time.NewTicker(look)
	defer tick.Stop()
	start := time.Now()
	for signalled := false; time.Since(start) < grace+patience; signalled = true {
		running := descendants(processes())
		for _, pid := range running {
			switch {
			case time.Since(start) > grace:
				_ = unix.Kill(pid, unix.SIGKILL)
			case !signalled:
				_ = unix.Kill(pid, unix.SIGHUP)
				_ = unix.Kill(pid, unix.SIGCONT)
			}
		}
		if len(running) == 0 {
			return
		}
		<-tick.C
	}
}

// process is what /proc says of one.
type process struct {
	parent int
	ended  bool
}

// processes lists the container's processes.
func processes() map[int]process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	all := map[int]process{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if stat, err := os.ReadFile("/proc/" + name + "/stat"); err == nil {
			if p, ok := parseStat(string(stat)); ok {
				all[pid] = p
			}
		}
	}
	return all
}

// parseStat reads state and parent of /proc/PID/stat.
func parseStat(stat string) (process, bool) {
	// The name in parentheses may itself contain spaces and parentheses.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return process{parent: parent, ended: fields[0] == "Z" || fields[0] == "X"}, err == nil
}

// descendants are the processes that descend from this one and still run.
func descendants(all map[int]process) (pids []int) {
	for pid, p := range all {
		for at, n := p.parent, 0; at > 0 && n < len(all); at, n = all[at].parent, n+1 {
			if at == os.Getpid() && !p.ended {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
