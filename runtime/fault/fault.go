// Package fault limits a panic to the one thing that panicked: a request, a
// container's step, a loop. Go ends the whole process for a panic that no
// goroutine recovers; with the daemon would go the API, the router and every
// start in progress.
//
// Each goroutine of the daemon begins in one of these functions; a test in
// package server enforces it. If a caller waits for a goroutine's result, the
// panic becomes its error; otherwise the goroutine just ends.
package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// Panic is the error that a panic becomes.
type Panic struct {
	Part  string // of the daemon
	Value any
	Stack []byte
}

// Error omits the stack, which Watch's function gets.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// panics counts the panics of the process.
var panics = struct {
	mu     sync.Mutex
	watch  func(*Panic)
	counts map[string]uint64
}{watch: func(p *Panic) { fmt.Fprintf(os.Stderr, "%s: %v\n%s", p.Part, p, p.Stack) }, counts: map[string]uint64{}}

// Watch calls f with each panic from now on, in the goroutine that panicked.
// Before, panics are written to standard error.
func Watch(f func(*Panic)) {
	panics.mu.Lock()
	defer panics.mu.Unlock()
	panics.watch = f
}

// Counts returns the number of panics in each part.
func Counts() map[string]uint64 {
	panics.mu.Lock()
	defer panics.mu.Unlock()
	return maps.Clone(panics.counts)
}

// report reports a panic that was recovered with value.
func report(part string, value any) *Panic {
	p := &Panic{Part: part, Value: value, Stack: debug.Stack()}
	panics.mu.Lock()
	panics.counts[part]++
	watch := panics.watch
	panics.mu.Unlock()
	watch(p)
	return p
}

// Guard calls f. A panic of f is reported, and is its error.
func Guard(part string, f func() error) (err error) {
	defer catch(part, &err)
	return f()
}

// catch reports a panic and makes it the error. Callers defer it.
func catch(part string, err *error) {
	if v := recover(); v != nil {
		*err = report(part, v)
	}
}

// Func is f that reports its panic and returns.
func Func(part string, f func()) func() {
	return func() {
		var err error // reported
		defer catch(part, &err)
		f()
	}
}

// ErrFunc is f that reports its panic and returns it as its error.
func ErrFunc(part string, f func() error) func() error {
	return func() error { return Guard(part, f) }
}

// Go calls f in a goroutine, of which a panic ends nothing else.
func Go(part string, f func()) { go Func(part, f)() }

// How long a loop that panicked waits before it is begun again.
const (
	pauseMin = 100 * time.Millisecond
	pauseMax = time.Minute
	calm     = 5 * time.Minute // of work, after which it waits the least again
)

// Within calls f and reports whether it returned within d. A call that did not goes on in the background: what waits for
// a file system that does not answer, such as one of a lost server, cannot be cancelled.
func Within(d time.Duration, part string, f func()) bool {
	done := make(chan struct{})
	Go(part, func() {
		defer close(done)
		f()
	})
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// Loop calls f, and again each time it has panicked, after an ever longer pause,
// until ctx ends. It returns f's own error; but one of a call after a panic, which
// may have broken what f needs, is reported and f called again.
func Loop(ctx context.Context, part string, f func(context.Context) error) func() error {
	return func() error {
		pause, broken := pauseMin, false
		for {
			began := time.Now()
			err := Guard(part, func() error { return f(ctx) })
			_, panicked := errors.AsType[*Panic](err)
			switch {
			case panicked:
				broken = true
			case err == nil || !broken || ctx.Err() != nil:
				return err
			default:
				_ = report(part, err)
			}
			if time.Since(began) > calm {
				pause = pauseMin
			}
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil
			}
			pause = min(2*pause, pauseMax)
		}
	}
}

// Handler reports a panic of next and breaks the connection off: its answer may
// have been begun.
func Handler(part string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				if v != http.ErrAbortHandler { // which a handler means
					_ = report(part, v)
				}
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
