package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"cupola/runtime/fault"
)

// Sink takes one line of output, without its end. The slice is valid during
// the call only. Calls for one Follower come one at a time.
type Sink func(line []byte, stderr bool, at time.Time)

// Config configures a Follower: what it reads and where it sends lines.
type Config struct {
	Stdout, Stderr string   // paths of the FIFOs; one that is "" is not read
	Limiter        *Limiter // shared by the processes of an instance; nil: no limit, no measure
	Sink           Sink
}

// Follower reads the output of one process of a container.
type Follower struct {
	limiter *Limiter
	readers []*reader // stdout, stderr; nil for one not read

	mu   sync.Mutex // held while sink runs
	sink Sink
}

// Open opens the FIFOs. What is written from then on is kept for Run, also if
// other processes have them open. A Follower that is never Run must be Closed.
func Open(c Config) (*Follower, error) {
	f := &Follower{limiter: c.Limiter, sink: c.Sink, readers: make([]*reader, 2)}
	if f.limiter == nil {
		f.limiter = NewLimiter(unlimited)
	}
	for i, path := range []string{c.Stdout, c.Stderr} {
		if path == "" {
			continue
		}
		r, err := openReader(path)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("follow %s: %w", path, err)
		}
		f.readers[i] = r
	}
	return f, nil
}

// Close closes the FIFOs; Run does so itself.
func (f *Follower) Close() {
	for _, r := range f.readers {
		if r != nil {
			r.close()
		}
	}
}

// Drain informs Run that the container has exited: Run reads the rest of the
// pipes and returns. It may be called more than once, and before Run.
func (f *Follower) Drain() { f.wake() }

// Run reads until Drain or until ctx ends. When ctx ends what lies in the
// pipes stays there for the next Follower. It closes the FIFOs.
func (f *Follower) Run(ctx context.Context) error {
	defer f.Close()
	stop := context.AfterFunc(ctx, fault.Func("logs", f.wake))
	defer stop()
	var other sync.WaitGroup
	var errs [2]error
	other.Go(fault.Func("logs", func() { errs[1] = f.follow(ctx, 1) }))
	errs[0] = f.follow(ctx, 0)
	other.Wait()
	return errors.Join(errs[:]...)
}

// wake ends the reads that wait.
func (f *Follower) wake() {
	for _, r := range f.readers {
		if r != nil {
			_ = r.file.SetReadDeadline(time.Unix(1, 0)) // fails only when closed; then no read waits
		}
	}
}

// follow reads stdout (0) or stderr (1).
func (f *Follower) follow(ctx context.Context, which int) error {
	r := f.readers[which]
	if r == nil {
		return nil
	}
	return fault.Guard("logs", func() error {
		s := &splitter{max: maxLine, line: func(line []byte) { f.emit(line, which == 1) }}
		defer s.flush()
		err := r.copyTo(s)
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case ctx.Err() != nil:
			return nil
		}
		return r.rest(s)
	})
}

// emit hands a line to the sink, if the limit allows.
func (f *Follower) emit(line []byte, stderr bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	switch f.limiter.allow(len(line), now) {
	case pass:
		f.sink(line, stderr, now)
	case announce:
		f.sink([]byte(f.limiter.notice()), false, now)
	case drop:
	}
}
