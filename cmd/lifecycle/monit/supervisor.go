package monit

import (
	"context"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"cupola/runtime/contract"
)

// supervisor keeps processes running.
type supervisor struct {
	checks []contract.MonitCheck // each after those that it depends on
	pause  time.Duration         // between looks
	say    func(format string, args ...any)
	// unmonitored leaves what has ended as it is. A script sets it.
	unmonitored atomic.Bool

	held     map[string]int      // how often in a row a condition has held
	seen     map[string]bool     // has run
	starting map[string]*program // the last start program
}

// run starts the processes, and starts again those that ended, until ctx ends. Then it stops them.
func (s *supervisor) run(ctx context.Context) error {
	s.seen, s.starting, s.held = map[string]bool{}, map[string]*program{}, map[string]int{}
	if err := forget(s.checks); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if !s.unmonitored.Load() {
			s.look(ctx)
		}
		sleep(ctx, s.pause)
	}
	for _, c := range slices.Backward(s.checks) {
		s.stop(c)
	}
	return forget(s.checks)
}

// look starts what does not run, and what it depends on before it.
func (s *supervisor) look(ctx context.Context) {
	for _, c := range s.checks {
		n, alive := pid(c)
		if alive {
			s.seen[c.Name] = true
			why := s.fulfilled(c, n)
			if why == nil {
				continue
			}
			s.say("process %s is restarted: %v", c.Name, why)
		} else if s.seen[c.Name] {
			s.say("process %s is not running", c.Name)
		}
		if s.seen[c.Name] {
			s.stopDependents(c.Name)
			s.stop(c)
			s.seen[c.Name] = false
		}
		if _, stays := pid(c); !stays && s.ready(c) && ctx.Err() == nil { // a second process might spoil the first one's files
			s.start(ctx, c)
		}
	}
}

// ready reports whether all run that a process depends on.
func (s *supervisor) ready(c contract.MonitCheck) bool {
	return !slices.ContainsFunc(s.checks, func(on contract.MonitCheck) bool {
		_, alive := pid(on)
		return slices.Contains(c.Depends, on.Name) && !alive
	})
}

// stopDependents stops what depends on a process, as monit does before it starts that again.
func (s *supervisor) stopDependents(name string) {
	down := map[string]bool{name: true}
	var all []contract.MonitCheck
	for _, c := range s.checks {
		if slices.ContainsFunc(c.Depends, func(on string) bool { return down[on] }) {
			down[c.Name] = true
			all = append(all, c)
		}
	}
	for _, c := range slices.Backward(all) {
		s.stop(c)
		s.seen[c.Name] = false
	}
}

// start runs a start program and waits until the process is there. The program may go on meanwhile, or become the process; one that
// has not ended is not started a second time. Of one that failed nothing more is expected: the next look starts it again, where monit
// would wait for the rest of its time.
func (s *supervisor) start(ctx context.Context, c contract.MonitCheck) {
	if s.starting[c.Name].running() || len(c.Start.Args) == 0 {
		return
	}
	s.say("starting process %s: %q", c.Name, c.Start.Args)
	p, err := begin(c.Start)
	if err != nil {
		s.say("process %s: %v", c.Name, err)
		return
	}
	s.starting[c.Name] = p
	within, cancel := context.WithTimeout(ctx, c.Start.Timeout)
	defer cancel()
	alive := func() bool { _, alive := pid(c); return alive }
	until(within, func() bool { return alive() || p.failed() })
	switch {
	case alive():
		s.say("process %s is running", c.Name)
		s.seen[c.Name] = true
	case ctx.Err() != nil:
	case p.failed():
		s.say("process %s did not start: its start program failed: %v", c.Name, p.err)
	default:
		s.say("process %s did not start within %s: no process has the number in %s", c.Name, c.Start.Timeout, c.Pidfile)
	}
}

// stop runs the stop program of a process that runs, or ends it by SIGTERM, and waits for the end of both.
func (s *supervisor) stop(c contract.MonitCheck) {
	n, alive := pid(c)
	if !alive {
		return
	}
	s.say("stopping process %s", c.Name)
	var stopping *program
	timeout := c.Stop.Timeout
	if len(c.Stop.Args) == 0 {
		timeout = c.Start.Timeout
		_ = syscall.Kill(n, syscall.SIGTERM) // it may have ended
	} else {
		var err error
		if stopping, err = begin(c.Stop); err != nil {
			s.say("process %s: %v", c.Name, err)
			return
		}
	}
	within, cancel := context.WithTimeout(context.Background(), max(timeout, time.Second))
	defer cancel()
	if !until(within, func() bool { _, alive := pid(c); return !alive && !stopping.running() }) {
		s.say("process %s did not stop within %s", c.Name, timeout)
	}
}

// program is a start or stop program that was begun. nil is none.
type program struct {
	ended chan struct{} // closed at its end
	err   error         // why it failed, once it has ended
}

// begin runs a program.
func begin(of contract.MonitProgram) (*program, error) {
	cmd, err := command(of)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &program{ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// running reports whether the program has not ended.
func (p *program) running() bool { return p != nil && running(p.ended) }

// failed reports whether the program has ended with an error.
func (p *program) failed() bool { return !p.running() && p.err != nil }

// running reports whether ended is still open.
func running(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// until asks at short distances until it is so, or until ctx ends.
func until(ctx context.Context, so func() bool) bool {
	for !so() {
		if ctx.Err() != nil {
			return false
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
