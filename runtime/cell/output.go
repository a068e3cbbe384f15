package cell

import (
	"bytes"
	"context"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/logs"
	"cupola/runtime/lrp"
)

// output is what one process writes.
type output interface {
	Start() // begins to read
	Drain() // the process has ended: reads what is left, and ends
	Close() // ends; what was not read stays for the next daemon
}

// followFunc opens the output of a step's process, whose pipes exist. If
// source is "", the output is discarded.
type followFunc func(i *instance, at, source string) (output, error)

// follower reads the FIFOs of a process.
type follower struct {
	*logs.Follower
	ctx     context.Context
	cancel  context.CancelFunc
	reading sync.WaitGroup
	failed  func(error)
}

// followFIFO is the followFunc of real containers.
func followFIFO(i *instance, at, source string) (output, error) {
	f, err := logs.Open(logs.Config{
		Stdout: i.stdoutPath(at), Stderr: i.stderrPath(at), Limiter: i.limiter, Sink: i.sink(source),
	})
	if err != nil {
		return nil, err
	}
	o := &follower{Follower: f}
	o.failed = func(err error) {
		i.cell.cfg.Log.Error("output was not read to its end", "instance_guid", i.guid(), "err", err)
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o, nil
}

// sink passes on the lines of one process.
func (i *instance) sink(source string) logs.Sink {
	last := i.lastErrors(source)
	return func(line []byte, stderr bool, at time.Time) {
		if stderr {
			last.add(line)
		}
		if source != "" {
			i.cell.cfg.Logs(lrp.LogLine{Target: i.logTarget(source), At: at, Err: stderr, Text: bytes.Clone(line)})
		}
	}
}

func (o *follower) Start() {
	o.reading.Go(fault.Func("cell", func() {
		if err := o.Run(o.ctx); err != nil {
			o.failed(err)
		}
	}))
}

func (o *follower) Drain() {
	o.Follower.Drain()
	o.reading.Wait()
	o.cancel()
}

func (o *follower) Close() {
	o.cancel()
	o.reading.Wait()
	o.Follower.Close()
}

// noOutput stands for output that cannot be read.
type noOutput struct{}

func (noOutput) Start() {}
func (noOutput) Drain() {}
func (noOutput) Close() {}
