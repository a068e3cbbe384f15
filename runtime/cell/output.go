package cell

import (
	"bytes"
	"context"
	"os"
	"sync"
	"time"

	"cupola/runtime/logs"
	"cupola/runtime/lrp"
)

// output is what the processes of one container write.
type output interface {
	Start()       // begins to read
	Drain()       // the processes have ended: reads what is left, and ends
	Close()       // ends; what was not read stays for the next daemon
	Rate() uint64 // bytes a second
}

// followFunc opens the output of an instance whose pipes exist.
type followFunc func(*instance) (output, error)

// followers read the FIFOs of a container's processes, under one rate limit.
type followers struct {
	limiter *logs.Limiter
	all     []*logs.Follower
	ctx     context.Context
	cancel  context.CancelFunc
	reading sync.WaitGroup
	failed  func(error)
}

// followFIFO is the followFunc of real containers.
func followFIFO(i *instance) (output, error) {
	o := &followers{limiter: logs.NewLimiter(i.spec.LogRateLimitByte)}
	o.failed = func(err error) {
		i.cell.cfg.Log.Error("output was not read to its end", "instance_guid", i.guid(), "err", err)
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	for n, pipe := range i.pipes() {
		source := i.spec.Log.Source
		if n > 0 {
			source = i.sidecarSource(n - 1)
		}
		f, err := logs.Open(logs.Config{
			Stdout: i.stdoutPath(pipe), Stderr: i.stderrPath(pipe),
			Limiter: o.limiter, Sink: i.sink(source),
		})
		if err != nil {
			o.Close()
			return nil, err
		}
		o.all = append(o.all, f)
	}
	return o, nil
}

// sink passes on the lines of one process.
func (i *instance) sink(source string) logs.Sink {
	target := i.spec.Log
	target.Source = source
	return func(line []byte, stderr bool, at time.Time) {
		i.cell.cfg.Logs(lrp.LogLine{Target: target, At: at, Err: stderr, Text: bytes.Clone(line)})
	}
}

func (o *followers) Start() {
	for _, f := range o.all {
		o.reading.Go(func() {
			if err := f.Run(o.ctx); err != nil {
				o.failed(err)
			}
		})
	}
}

func (o *followers) Drain() {
	for _, f := range o.all {
		f.Drain()
	}
	o.reading.Wait()
	o.cancel()
}

func (o *followers) Close() {
	o.cancel()
	o.reading.Wait()
	for _, f := range o.all {
		f.Close()
	}
}

func (o *followers) Rate() uint64 { return o.limiter.Rate() }

// makePipes makes the FIFOs of all processes and opens the reading ends, before
// a process can write to them: what nobody has open loses its content.
func (b *build) makePipes(context.Context) error {
	for _, pipe := range b.pipes() {
		for _, path := range []string{b.stdoutPath(pipe), b.stderrPath(pipe)} {
			if err := logs.MakeFIFO(path); err != nil {
				return err
			}
		}
	}
	out, err := b.cell.follow(b.instance)
	if err != nil {
		return err
	}
	b.setOutput(out)
	return nil
}

// openPipes opens a process' ends of its FIFOs. The caller closes them.
func (b *build) openPipes(pipe string) (stdout, stderr *os.File, err error) {
	stdout, err = logs.OpenWriter(b.stdoutPath(pipe))
	if err != nil {
		return nil, nil, err
	}
	stderr, err = logs.OpenWriter(b.stderrPath(pipe))
	if err != nil {
		stdout.Close()
		return nil, nil, err
	}
	return stdout, stderr, nil
}
