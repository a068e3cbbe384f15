package container

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/container/starter"
	"cupola/runtime/container/starter/program"
	"cupola/runtime/fault"
)

// startTimeout is less than the minute after which libcontainer panics when a
// container asks it for a mount.
const startTimeout = 50 * time.Second

// killTimeout bounds the wait for a killed starter, which the kernel may hold in
// a mount that never returns.
const killTimeout = 5 * time.Second

// answerMax bounds what a starter says, in bytes.
const answerMax = 1 << 20

// launcher runs a program that starts containers.
type launcher struct {
	name, dir string // of the embedded program, and where its copy may lie
	timeout   time.Duration
	log       *slog.Logger
	mountNS   *os.File // for the program launch

	mu   sync.Mutex
	path string
	file *os.File // that path leads to; nil where it is somebody else's
}

// newLauncher runs the embedded program of that name, or the one at path.
func newLauncher(cfg Config, name, path string) *launcher {
	return &launcher{name: name, dir: cfg.Dir, path: path, timeout: cmp.Or(cfg.StartTimeout, startTimeout), log: cfg.Log}
}

// program is the path of the program, which is unpacked when it is first needed: it
// would hold up the daemon's start.
func (l *launcher) program() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path == "" {
		file, err := program.Open(l.name, l.dir)
		if err != nil {
			return "", err
		}
		l.file, l.path = file, openPath(file)
	}
	return l.path, nil
}

// openPath leads to an open file of this process, for its children too. They have
// other files with these numbers, so it is not by /proc/self.
func openPath(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()) }

// conversation asks a program for a process by the program's standard input and
// output. The refusal is why the program did not start it.
type conversation func(in io.Writer, out io.Reader) (p *process, refusal string, err error)

// launch runs a starter for the request and returns the process that it started.
func (e *Engine) launch(ctx context.Context, r starter.Request, stdio Stdio, files []*os.File) (*process, error) {
	r.States, r.Files, r.Stdio = e.states, len(files), stdio.inherited()
	return e.start.launch(ctx, r.ID, stdio, files, func(in io.Writer, out io.Reader) (*process, string, error) { return converse(in, out, r) })
}

func (s Stdio) inherited() [3]bool { return [3]bool{s.In != nil, s.Out != nil, s.Err != nil} }

// launch runs the program for a container and returns the process that it
// started. On failure no process of the program is left, unless the kernel
// cannot kill it. A start that has begun is not cancelled: its process may
// already run; it is stopped like any other after the start.
func (l *launcher) launch(ctx context.Context, id string, stdio Stdio, files []*os.File, talk conversation) (*process, error) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), l.timeout, fmt.Errorf("it did not start within %s", l.timeout))
	defer cancel()
	files = append([]*os.File{stdio.In, stdio.Out, stdio.Err}, files...)
	type result struct {
		*process
		error
	}
	results := make(chan result)
	over := make(chan struct{})
	defer close(over)
	fault.Go("container", func() {
		var p *process
		err := fault.Guard("container", func() (err error) {
			p, err = l.run(ctx, id, files, talk)
			return err
		})
		select {
		case results <- result{p, err}:
		case <-over:
			if err == nil {
				_ = p.signal(unix.SIGKILL)
			}
		}
	})
	select {
	case got := <-results:
		return got.process, got.error
	case <-ctx.Done():
	}
	late := time.NewTimer(killTimeout)
	defer late.Stop()
	select {
	case got := <-results:
		return got.process, got.error
	case <-late.C:
		return nil, fmt.Errorf("%w, and cannot be killed", context.Cause(ctx))
	}
}

// run runs the program to its end.
func (l *launcher) run(ctx context.Context, id string, files []*os.File, talk conversation) (*process, error) {
	// The kernel kills the starter when the thread that made it ends, as all do
	// with the daemon: nothing goes on to start what the next one may remove.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	path, err := l.program()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = []string{"cupola-starter:" + id} // shown by the container's init, too, until it executes its process
	cmd.Env = []string{"GOTRACEBACK=single"}    // none of the daemon's
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	said := &excerpt{}
	cmd.Stderr = fault.Writer("container", said)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p, refusal, err := talk(in, out)
	if p == nil || err != nil || refusal != "" {
		_ = cmd.Cancel()
	}
	in.Close()
	_ = cmd.Wait() // the process's state has the result
	if p != nil {
		fault.Go("container", func() { p.watch() })
	}
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case refusal != "":
		err = errors.New(refusal)
	case err != nil:
		l.log.ErrorContext(ctx, "starter crashed", "container", id, "state", cmd.ProcessState, "err", err, "stack", string(said.text))
		err = fmt.Errorf("starter crashed: %s: %s", cmd.ProcessState, said.firstLine())
	default:
		return p, nil
	}
	if p != nil {
		_ = p.signal(unix.SIGKILL)
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
		defer cancel()
		_ = p.waitEnd(soon) // what the kernel holds for longer ends by itself some time
	}
	family.sweep(cmd.Process.Pid)
	return nil, err
}

// converse sends the request and holds the process that the answer names, which
// the starter still is the parent of.
func converse(in io.Writer, out io.Reader, r starter.Request) (p *process, refusal string, err error) {
	a, err := ask(in, out, r)
	if err != nil || a.Error != "" {
		return nil, a.Error, err
	}
	p, err = family.claim(a.PID)
	return p, "", err
}

func ask(in io.Writer, out io.Reader, r starter.Request) (a starter.Answer, err error) {
	if err := json.NewEncoder(in).Encode(r); err != nil {
		return a, err
	}
	return a, json.NewDecoder(io.LimitReader(out, answerMax)).Decode(&a)
}

// filterDevices has v2's filter of devices put on the parent of all containers'
// cgroups, in place of one that is there. On v1 each container's cgroup has a list of
// its own.
func (e *Engine) filterDevices() error {
	if !e.tree.v2 {
		return nil
	}
	r := starter.Request{Filter: &starter.Filter{Cgroup: e.tree.dir("", ""), Devices: deviceRules()}}
	_, err := e.start.launch(context.Background(), "device filter", Stdio{}, nil, func(in io.Writer, out io.Reader) (*process, string, error) {
		a, err := ask(in, out, r)
		return nil, a.Error, err
	})
	if err != nil {
		return fmt.Errorf("restrict the devices of containers: %w", err)
	}
	return nil
}

// excerpt keeps the first of what is written to it.
type excerpt struct{ text []byte }

// excerptMax holds the stack of a goroutine, as a rule.
const excerptMax = 16 << 10

func (e *excerpt) Write(p []byte) (int, error) {
	e.text = append(e.text, p[:min(len(p), excerptMax-len(e.text))]...)
	return len(p), nil
}

// firstLine is the first line that says why a starter crashed. libcontainer's log, which
// is repeated by the errors that it returns, may come before it.
func (e *excerpt) firstLine() string {
	lines := bytes.Split(bytes.TrimSpace(e.text), []byte("\n"))
	for _, line := range lines {
		if !bytes.HasPrefix(line, []byte("time=")) {
			return string(line)
		}
	}
	return string(lines[0])
}
