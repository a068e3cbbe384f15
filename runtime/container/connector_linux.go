package container

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"cupola/runtime/fault"
)

// connector gets the exit codes of processes that are not this one's children
// from the kernel's process connector, where a pidfd has no exit code (before
// Linux 6.15). It listens only while it waits for a process. The kernel
// reports every exit on the machine; others are dropped. It reports only in
// the initial user, pid and network namespaces.
type connector struct {
	unused bool // pidfds have exit codes
	blind  bool // never ask a pidfd
	log    *slog.Logger

	mu     sync.Mutex
	socket *os.File // nil while no process is watched
	deaf   bool     // the kernel refused to tell
	held   map[int][]*process
}

// newConnector is for a kernel of that release.
func newConnector(release string, blind bool, log *slog.Logger) *connector {
	var major, minor int
	_, err := fmt.Sscanf(release, "%d.%d", &major, &minor)
	tells := err == nil && (major > 6 || major == 6 && minor >= 15)
	return &connector{unused: tells && !blind, blind: blind, log: log, held: map[int][]*process{}}
}

// kernelRelease is the running kernel's; "" if unknown.
func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// open is openProcess for one that somebody else started.
func (c *connector) open(pid int, ticks uint64) (*process, error) {
	if c.unused {
		return openProcess(pid, ticks)
	}
	// An exit that arrives before its process is watched waits for mu.
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listenLocked()
	p, err := holdProcess(pid, ticks)
	if err != nil {
		c.pauseLocked()
		return nil, err
	}
	p.blind = c.blind
	if c.socket != nil {
		p.connector = make(chan Exit, 1)
		p.forget = func() { c.release(p) }
		c.held[pid] = append(c.held[pid], p)
	}
	fault.Go("container", func() { p.watch() })
	return p, nil
}

func (c *connector) listenLocked() {
	if c.socket != nil || c.deaf {
		return
	}
	socket, err := openConnector()
	if err != nil {
		c.deaf = true
		c.log.Warn("exits of adopted processes may stay unknown", "err", err)
		return
	}
	c.socket = socket
	fault.Go("container", func() { c.listen(socket) })
}

// pauseLocked stops listening when no process is watched.
func (c *connector) pauseLocked() {
	if c.socket == nil || len(c.held) > 0 {
		return
	}
	// Closing alone leaves a listener counted before Linux 6.6.
	if conn, err := c.socket.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = request(int(fd), ignoreEvents) })
	}
	socket := c.socket
	fault.Go("container", func() { socket.Close() }) // which waits for listen, which may wait for mu
	c.socket = nil
}

func (c *connector) release(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := slices.DeleteFunc(c.held[p.pid], func(q *process) bool { return q == p })
	c.held[p.pid] = left
	if len(left) == 0 {
		delete(c.held, p.pid)
	}
	c.pauseLocked()
}

// listen receives exits until the socket is closed. The kernel drops what does
// not fit its buffer: waiters time out.
func (c *connector) listen(socket *os.File) {
	conn, err := socket.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 4096)
	_ = conn.Read(func(fd uintptr) bool {
		for {
			n, err := receive(int(fd), buf)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return false
			case errors.Is(err, unix.ENOBUFS):
				continue
			case err != nil:
				return true
			}
			if pid, status, ok := parseExit(buf[:n]); ok {
				c.deliver(pid, exitOf(status))
			}
		}
	})
}

// deliver passes on the exit of a thread of pid. One that other threads of its
// process outlive does not count; the last has the code of all.
func (c *connector) deliver(pid int, x Exit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.held[pid] {
		if !p.exited() {
			continue
		}
		select {
		case p.connector <- x:
		default: // another thread reported it
		}
	}
}
