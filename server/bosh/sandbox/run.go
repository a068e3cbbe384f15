package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"cupola/runtime/container"
	"cupola/runtime/fault"
	"cupola/server/bosh/erb"
)

// fromOutput makes Ruby read from its standard output, which is one end of a
// socket: containers start without standard input.
const fromOutput = "$stdin.reopen(IO.for_fd(1, 'rb', autoclose: false))"

func newID() string { return "bosh-" + strings.ToLower(rand.Text()) }

// errTime is why a run is ended that takes too long.
var errTime = errors.New("time is over")

// run runs a program; its output is returned with an error, too.
func (s *Sandbox) run(ctx context.Context, ruby Interpreter, program, input []byte) (output []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Time, errTime)
	defer cancel()
	err = s.with(ctx, rubyRoot(ruby.Stack), func(m mounted) error {
		r := &running{Sandbox: s, id: m.id, what: "ruby"}
		output, err = r.run(ctx, container.Spec{
			ID: m.id, Rootfs: m.Path, Mounts: mounts(m.Root), Users: container.IDMap(m.users),
			Process: container.Process{Args: []string{ruby.Path, "-e", fromOutput, "-e", string(program)}, Env: []string{}, UID: nobody, GID: nobody, Nofile: maxFiles},
			Limits:  container.Limits{MemoryBytes: s.cfg.MemoryBytes, CPUShares: cpuShares, Pids: maxProcesses},
		}, input)
		return err
	})
	return output, err
}

// running is one container.
type running struct {
	*Sandbox
	id   string
	what string // runs in it
}

func (r *running) run(ctx context.Context, spec container.Spec, input []byte) ([]byte, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	errOurs, errTheirs, err := os.Pipe()
	if err != nil {
		theirs.Close()
		return nil, err
	}
	defer errOurs.Close()
	spec.Stdout, spec.Stderr = theirs, errTheirs
	_, err = r.cfg.Containers.Start(ctx, spec)
	theirs.Close()
	errTheirs.Close()
	if err != nil {
		return nil, err
	}
	// With its first process all of a container's end, and so do its ends of these.
	kill := func() { _ = r.cfg.Containers.Signal(r.id, syscall.SIGKILL) }
	defer context.AfterFunc(ctx, kill)()
	said := make(chan string, 1)
	fault.Go("sandbox", func() {
		text := ""
		defer func() { said <- text }()
		text = tail(errOurs)
	})
	fault.Go("sandbox", func() {
		_, _ = ours.Write(input) // a program that has ended says so itself
		_ = ours.CloseWrite()
	})
	output, err := io.ReadAll(io.LimitReader(ours, r.cfg.OutputBytes+1))
	tooMuch := int64(len(output)) > r.cfg.OutputBytes
	if tooMuch || err != nil {
		kill()
	}
	return output, errors.Join(err, r.wait(ctx, tooMuch, said))
}

// wait waits for the program, and returns its error.
func (r *running) wait(ctx context.Context, tooMuch bool, said <-chan string) error {
	exit, err := r.cfg.Containers.Wait(ctx, r.id)
	switch {
	case errors.Is(context.Cause(ctx), errTime):
		return ended("did not end within %s", r.cfg.Time)
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case tooMuch:
		return ended("wrote more than %d MB", r.cfg.OutputBytes>>20)
	case exit.OOM:
		return ended("needed more than %d MB of memory", r.cfg.MemoryBytes>>20)
	case exit.Code != 0:
		return ended("%s ended with status %d: %s", r.what, exit.Code, lastLine(<-said))
	}
	return nil
}

func ended(format string, args ...any) error { return erb.Ended(fmt.Sprintf(format, args...)) }

// tail reads all there is and keeps the last of it.
func tail(f io.Reader) string {
	const keep = 4096
	var last []byte
	buf := make([]byte, keep)
	for {
		n, err := f.Read(buf)
		last = append(last, buf[:n]...)
		last = last[max(0, len(last)-keep):]
		if err != nil {
			return strings.ToValidUTF8(string(last), "?")
		}
	}
}
