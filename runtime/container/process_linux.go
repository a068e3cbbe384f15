package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"cupola/runtime/fault"
)

// reapTimeout bounds the wait for a foreign parent to reap a process, before
// which the kernel does not tell its exit code.
const reapTimeout = 5 * time.Second

// connectorTimeout bounds the wait for the connector, which reports an exit right
// after the pidfd. It may have lost it.
const connectorTimeout = time.Second

// process is one process held by a pidfd, so that its number cannot be reused
// unseen. Its end is awaited on the runtime's poller: no thread, no polling.
type process struct {
	pid   int
	ticks uint64
	file  *os.File
	ended chan struct{} // closed when it runs no more
	done  chan struct{} // closed when exit is set, for which somebody must have reaped it as a rule
	exit  Exit          // without OOM

	corpse    Exit      // the exit as seen before it was reaped
	blind     bool      // its pidfd is not asked
	connector chan Exit // exits that the connector reports; nil without it
	forget    func()    // nil, or called when done
}

// openProcess holds the process pid that started at ticks since boot, or at any
// time if ticks is 0. It returns an ESRCH error when that process is gone.
func openProcess(pid int, ticks uint64) (*process, error) {
	p, err := holdProcess(pid, ticks)
	if err == nil {
		fault.Go("container", func() { p.watch() })
	}
	return p, err
}

// holdProcess is openProcess, but watches it not yet.
func holdProcess(pid int, ticks uint64) (*process, error) {
	if pid <= 0 {
		return nil, unix.ESRCH
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("open pidfd of %d: %w", pid, err)
	}
	started, err := startTicks(pid)
	if err == nil && ticks != 0 && started != ticks {
		err = unix.ESRCH
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("find process %d: %w", pid, err)
	}
	return &process{
		pid: pid, ticks: started, file: os.NewFile(uintptr(fd), "pidfd"), ended: make(chan struct{}), done: make(chan struct{}),
	}, nil
}

// startTicks reads when a process started.
func startTicks(pid int) (uint64, error) {
	st, err := readStat(pid)
	return st.ticks, err
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) signal(sig syscall.Signal) error {
	conn, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	if err := conn.Control(func(fd uintptr) {
		sent = unix.PidfdSendSignal(int(fd), sig, nil, 0)
	}); err != nil {
		return os.ErrProcessDone
	}
	if errors.Is(sent, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return sent
}

// wait returns the exit, also if ctx ends at the same time.
func (p *process) wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
	}
	select {
	case <-p.done:
		return p.exit, nil
	default:
		return Exit{}, context.Cause(ctx)
	}
}

// waitEnd returns when the process runs no more, reaped or not.
func (p *process) waitEnd(ctx context.Context) error {
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watch waits for the process to exit, reaps it if it is a child, and
// otherwise gets its exit status if the kernel offers it.
func (p *process) watch() {
	defer func() {
		if p.alive() {
			close(p.ended)
		}
		close(p.done)
		p.file.Close()
		if p.forget != nil {
			p.forget()
		}
	}()
	conn, err := p.file.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		if p.reap(int(fd)) {
			return true
		}
		events := pollNow(int(fd))
		if events == 0 {
			return false
		}
		if p.alive() {
			p.corpse = exitOfCorpse(p.pid, p.ticks)
			close(p.ended)
			_ = p.file.SetReadDeadline(time.Now().Add(reapTimeout))
		}
		if p.blind {
			return true
		}
		exit, able := exitInfo(int(fd))
		p.exit = exit
		return exit.Known || !able || events&unix.POLLHUP != 0
	})
	if !p.exit.Known {
		p.exit = p.otherExit()
	}
}

// otherExit returns the exit from sources other than the pidfd.
func (p *process) otherExit() Exit {
	if p.connector == nil {
		return p.corpse
	}
	late := time.NewTimer(connectorTimeout)
	defer late.Stop()
	select {
	case x := <-p.connector:
		return x
	case <-late.C:
		return p.corpse
	}
}

// exited reports whether the process has exited, even if watch has not seen it
// yet.
func (p *process) exited() bool {
	conn, err := p.file.SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	_ = conn.Control(func(fd uintptr) { ended = pollNow(int(fd)) != 0 })
	return ended
}

// reap reports whether the process was a child and has ended.
func (p *process) reap(fd int) bool {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PIDFD, fd, &info, unix.WEXITED|unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || info.Signo == 0 {
			return false
		}
		break
	}
	// The layout of siginfo_t for SIGCHLD: pid, uid, status after the header.
	raw := (*[128]byte)(unsafe.Pointer(&info))
	status := int(*(*int32)(unsafe.Pointer(&raw[24])))
	const exited = 1 // CLD_EXITED
	if info.Code == exited {
		p.exit = Exit{Code: status, Known: true}
	} else {
		p.exit = Exit{Code: 128 + status, Signal: status, Known: true}
	}
	return true
}

func pollNow(fd int) int16 {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return fds[0].Revents
	}
}

// pidfdInfo is struct pidfd_info of Linux 6.13, whose exit code came with 6.15.
type pidfdInfo struct {
	mask, cgroup uint64
	ids          [11]uint32
	exitCode     int32
}

// exitInfo returns the exit status of a process that another process reaped.
// able is false if the kernel does not support it, so that waiting is useless.
func exitInfo(fd int) (x Exit, able bool) {
	const (
		getInfo  = 3<<30 | 64<<16 | 0xff<<8 | 11 // PIDFD_GET_INFO: _IOWR(0xff, 11, 64 bytes)
		infoExit = 1 << 3                        // PIDFD_INFO_EXIT
	)
	info := pidfdInfo{mask: infoExit}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), getInfo, uintptr(unsafe.Pointer(&info)))
	if errno != 0 || info.mask&infoExit == 0 {
		return Exit{}, errno != unix.ENOTTY && errno != unix.EINVAL
	}
	return exitOf(syscall.WaitStatus(info.exitCode)), true
}

func exitOf(ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Code: 128 + int(ws.Signal()), Signal: int(ws.Signal()), Known: true}
	}
	return Exit{Code: ws.ExitStatus(), Known: true}
}
