package container

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"cupola/runtime/container/starter"
	"cupola/runtime/contract"
)

// Exec is a further process of a container.
type Exec struct {
	// PID is the process as the host sees it.
	PID int
	// StartTicks is its start time in clock ticks since boot.
	StartTicks uint64

	proc *process
	oom  func() bool // the kernel has killed a process of the container for memory
}

// Exec runs another process in the container, with the namespaces, cgroups,
// capabilities and system calls that its own processes have. It ends with the
// container.
func (e *Engine) Exec(ctx context.Context, id string, p Process, stdio Stdio) (*Exec, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(p.Args) == 0 {
		return nil, fmt.Errorf("exec in container %s: no command", id)
	}
	if _, err := e.find(id); err != nil {
		return nil, err
	}
	proc, err := e.enter(ctx, id, p, stdio, nil)
	if err != nil {
		return nil, fmt.Errorf("exec in container %s: %w", id, err)
	}
	return e.exec(id, proc), nil
}

func (e *Engine) exec(id string, p *process) *Exec {
	return &Exec{PID: p.pid, StartTicks: p.ticks, proc: p, oom: func() bool { return e.tree.oomKilled(e.place(id)) }}
}

// Found returns the process that an Exec in the container started, of this
// Engine or an earlier one. If it has exited and its exit status is lost, its
// Exit is not Known.
func (e *Engine) Found(id string, pid int, startTicks uint64) *Exec {
	proc, err := e.exits.open(pid, startTicks)
	if err != nil {
		proc = &process{pid: pid, ticks: startTicks, ended: make(chan struct{}), done: make(chan struct{})}
		close(proc.ended)
		close(proc.done)
	}
	return e.exec(id, proc)
}

// Relay sends signals to a process of the container, which started at ticks since boot, or at any
// time if that is 0: those whose numbers can be read from a socket, as bytes. Another process of
// the container does so, as the user of p. The socket is closed when either has ended.
func (e *Engine) Relay(ctx context.Context, id string, pid int, ticks uint64, p Process, from *os.File) error {
	to, err := holdProcess(pid, ticks)
	if err != nil {
		return err
	}
	defer to.file.Close()
	if _, err := e.find(id); err != nil {
		return err
	}
	p.Args = nil
	if _, err := e.enter(ctx, id, p, Stdio{In: from}, to.file); err != nil {
		return fmt.Errorf("relay signals in container %s: %w", id, err)
	}
	return nil
}

// enter starts a process in the container, or a relay for a process of it by its pidfd.
func (e *Engine) enter(ctx context.Context, id string, p Process, stdio Stdio, relayed *os.File) (*process, error) {
	tasks, err := e.tree.tasks(e.place(id))
	if err != nil {
		return nil, err
	}
	helper, err := e.openHelper()
	defer func() { closeAll(slices.Concat(tasks, helper)) }()
	if err != nil {
		return nil, err
	}
	proc := e.command(p, tasks, nil)
	// A container that an earlier version started has the helper elsewhere, where
	// its root may have moved it away. The descriptors cannot be replaced, nor can
	// /proc, which is a mount point.
	first := 3 + len(tasks)
	proc.Args[0] = "/proc/self/fd/" + strconv.Itoa(first)
	proc.Args[2] = "/proc/self/fd/" + strconv.Itoa(first+1)
	files := slices.Concat(tasks, helper)
	if relayed != nil {
		files = append(files, relayed)
		proc.Args = append(proc.Args[:len(proc.Args)-1], contract.InitRelay, strconv.Itoa(first+len(helper))) // in the place of "--"
	}
	proc.Capabilities = capabilities(p)
	rec, err := readState(e.stateDir(id))
	if err != nil {
		return nil, err
	}
	e.chownStdio(rec.root(), p, stdio.In, stdio.Out, stdio.Err)
	return e.launch(ctx, starter.Request{ID: id, Process: proc}, stdio, files)
}

// openHelper opens the helper and its filter for a process that inherits them.
func (e *Engine) openHelper() ([]*os.File, error) {
	var files []*os.File
	for _, name := range []string{"init", filterName} {
		f, err := os.Open(filepath.Join(e.shared.helperDir, name))
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Wait returns when the process has ended.
func (x *Exec) Wait(ctx context.Context) (Exit, error) {
	exit, err := x.proc.wait(ctx)
	exit.OOM = err == nil && exit.Signal == int(syscall.SIGKILL) && x.oom()
	return exit, err
}

// Signal sends sig to the process.
func (x *Exec) Signal(sig syscall.Signal) error {
	if x.proc.file == nil {
		return os.ErrProcessDone
	}
	return x.proc.signal(sig)
}
