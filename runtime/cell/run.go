package cell

import (
	"cmp"
	"context"
	"path"
	"syscall"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
)

// Diego's times of a stop.
const (
	grace    = 10 * time.Second // from SIGTERM to SIGKILL
	exitWait = time.Second      // from SIGKILL to giving up on the process
)

// stopOf is how a process is ended.
func stopOf(r *lrp.Run) []lrp.Signal {
	if len(r.Stop) > 0 {
		return r.Stop
	}
	return []lrp.Signal{{Name: "TERM", Wait: grace}}
}

// graceOf is how long a process may take to end.
func graceOf(r *lrp.Run) (all time.Duration) {
	for _, s := range stopOf(r) {
		all += s.Wait
	}
	return all
}

// signalOf is the signal of a name.
func signalOf(name string) syscall.Signal {
	switch name {
	case "INT":
		return syscall.SIGINT
	case "QUIT":
		return syscall.SIGQUIT
	}
	return syscall.SIGTERM
}

// doubtTime is how long a killed process waits for the end of the container's
// first process: when that exits the kernel kills the others, and reports them
// first.
const doubtTime = 250 * time.Millisecond

// run is the life of one process.
func (p *performer) run(ctx context.Context, at string, r *lrp.Run, source string) error {
	source = cmp.Or(r.LogSource, source)
	if done, err := p.wasDone(at); done {
		p.ranFirst(at)
		return err
	}
	began := time.Now()
	running, err := p.process(ctx, at, r, source)
	if err != nil {
		return p.done(at, err)
	}
	return p.ran(at, r, source, began, running.out, p.await(ctx, running, stopOf(r)))
}

// ran is what follows the end of a process. It is apart from run, as performed is from live.
func (p *performer) ran(at string, r *lrp.Run, source string, began time.Time, out output, end runEnd) error {
	if p.captured == nil && !end.away {
		p.trace.step("run", path.Base(r.Path), began, end.err(source) != nil)
	}
	if end.away {
		out.Close()
		return errCancelled
	}
	out.Drain()
	defer p.ranFirst(at)
	if p.endedByFirst(at, end) {
		return p.done(at, errCancelled)
	}
	if p.captured == nil {
		exceeded := time.Duration(0)
		if end.killed {
			exceeded = graceOf(r)
		}
		p.line(source, false, exitLine(end.exit, exceeded))
		if hint := p.exitHint(r, source, end.exit); hint != "" {
			p.line(source, true, hint)
		}
	}
	p.exited(at, end.exit)
	return p.done(at, end.err(source))
}

// ranFirst notes the end of the container's first process.
func (p *performer) ranFirst(at string) {
	if at == p.init {
		p.isDown()
	}
}

// runEnd is the end of a process.
type runEnd struct {
	exit      container.Exit
	cancelled bool // it was asked to end
	killed    bool // which it did not within the grace time
	lost      bool // not even when it was killed
	away      bool // the daemon ends: it goes on
}

func (e runEnd) err(source string) error {
	switch {
	case e.lost:
		return failure{"process did not exit"}
	case e.killed:
		return errGrace
	case e.cancelled && !e.outOfMemory():
		return errCancelled
	}
	if reasons := exitedWith(source, e.exit); reasons != nil {
		return failure(reasons)
	}
	return nil
}

// outOfMemory reports whether the kernel ended the process. It may do so just when the process is asked to end, because it was found
// unhealthy: then this is why.
func (e runEnd) outOfMemory() bool { return e.exit.OOM && e.exit.Code == 128+int(syscall.SIGKILL) }

// await waits for the end of a process, and ends it when ctx does.
func (p *performer) await(ctx context.Context, running running, stop []lrp.Signal) runEnd {
	exit, err := p.exitOf(ctx, running)
	switch {
	case err == nil || ctx.Err() == nil: // it ended before it was asked to
		return runEnd{exit: exit, away: p.life.Err() != nil}
	case p.life.Err() != nil:
		return runEnd{away: true}
	}
	exits := make(chan container.Exit, 1)
	fault.Go("cell", func() {
		exit, _ := p.exitOf(p.life, running)
		exits <- exit
	})
	return p.terminate(running, exits, stop)
}

// exitOf waits for the end of a process until ctx ends.
func (p *performer) exitOf(ctx context.Context, running running) (exit container.Exit, err error) {
	err = fault.Guard("cell", func() (err error) {
		exit, err = running.Wait(ctx)
		return err
	})
	if err != nil && ctx.Err() == nil {
		p.lostExit(ctx, err)
	}
	return exit, err
}

func (i *instance) lostExit(ctx context.Context, err error) {
	i.cell.cfg.Log.ErrorContext(ctx, "exit status was lost", "instance_guid", i.guid(), "err", err)
}

// terminate ends a process: with one signal after the other, and SIGKILL at last.
func (p *performer) terminate(running running, exits <-chan container.Exit, stop []lrp.Signal) runEnd {
	e := runEnd{cancelled: true}
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case e.exit = <-exits:
			e.away = p.life.Err() != nil
			return e
		case <-p.life.Done():
			e.away = true
			return e
		case <-next.C:
			switch {
			case len(stop) > 0:
				p.signal(running, signalOf(stop[0].Name))
				next.Reset(stop[0].Wait)
				stop = stop[1:]
			case e.killed:
				e.lost = true
				return e
			default:
				e.killed = true
				p.signal(running, syscall.SIGKILL)
				next.Reset(exitWait)
			}
		}
	}
}

// signal signals a process. It ignores a process that has exited, since its
// exit will be reported.
func (p *performer) signal(running running, sig syscall.Signal) {
	if err := running.Signal(sig); err != nil {
		p.cell.cfg.Log.Debug("process was not signalled", "instance_guid", p.guid(), "err", err)
	}
}

// endedByFirst reports whether the kernel killed a process because the
// container's first one exited: that is not the process' failure.
func (p *performer) endedByFirst(at string, end runEnd) bool {
	if at == p.init || end.cancelled || end.exit.Known && end.exit.Signal != int(syscall.SIGKILL) {
		return false
	}
	return p.firstEnds()
}

// firstEnds reports whether the container's first process has exited, or does
// so now.
func (p *performer) firstEnds() bool {
	select {
	case <-p.down:
		return true
	case <-time.After(doubtTime):
		return false
	case <-p.life.Done():
		return true
	}
}
