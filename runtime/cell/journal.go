package cell

import (
	"errors"
	"strings"
	"time"

	"cupola/runtime/container"
)

// stepRecord is what one step of a program has come to.
type stepRecord struct {
	Began     time.Time
	Launched  bool // a process is being started, or was
	PID       int  // of its process, once there is one
	Ticks     uint64
	Done      bool
	Failure   []string
	Cancelled bool
	Killed    bool
}

// err is the end of a step that is done.
func (s stepRecord) err() error {
	switch {
	case len(s.Failure) > 0:
		return failure(s.Failure)
	case s.Killed:
		return errGrace
	case s.Cancelled:
		return errCancelled
	}
	return nil
}

// step returns the record of a step, or nothing if it has not begun.
func (i *instance) step(at string) stepRecord {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := i.rec.Steps[at]; s != nil {
		return *s
	}
	return stepRecord{}
}

// wasDone reports whether a step has ended, and how. It is apart from its callers, as performed is from live.
func (i *instance) wasDone(at string) (bool, error) {
	s := i.step(at)
	return s.Done, s.err()
}

// under reports whether a step, or one within it, has begun.
func (p *performer) under(at string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.rec.Steps {
		if name == at || strings.HasPrefix(name, at+".") {
			return true
		}
	}
	return false
}

// note changes what is kept of a step.
func (p *performer) note(at string, change func(*stepRecord)) {
	if p.captured != nil {
		return // a monitor begins again
	}
	p.keepStarted(func(r *record) { change(r.step(at)) })
}

// step is the record of a step, made where there is none.
func (r *record) step(at string) *stepRecord {
	if r.Steps == nil {
		r.Steps = map[string]*stepRecord{}
	}
	if r.Steps[at] == nil {
		r.Steps[at] = &stepRecord{Began: time.Now()}
	}
	return r.Steps[at]
}

// began records that a step begins, and returns when it did.
func (p *performer) began(at string) time.Time {
	p.first(at)
	if s := p.step(at); !s.Began.IsZero() {
		return s.Began
	}
	return time.Now()
}

// first notes that a step begins, and reports whether it had not before.
func (p *performer) first(at string) bool {
	if !p.step(at).Began.IsZero() {
		return false
	}
	p.note(at, func(*stepRecord) {})
	return true
}

// done notes the end of a step, and returns it.
func (p *performer) done(at string, err error) error {
	if p.life.Err() != nil {
		return errCancelled
	}
	p.note(at, func(s *stepRecord) {
		s.Done, s.Failure = true, reasonsOf(err)
		s.Cancelled, s.Killed = errors.Is(err, errCancelled), errors.Is(err, errGrace)
	})
	return err
}

// exited notes the exit of a process as the container's.
func (p *performer) exited(at string, x container.Exit) {
	if p.captured != nil {
		return
	}
	p.update(func(r *record) {
		if r.ExitOf != p.init || r.ExitOf == "" {
			r.Exit, r.ExitOf = &x, at
		}
	})
}
