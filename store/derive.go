package store

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"cupola/runtime/fault"
)

// Derivation is a value that is derived from rows, and derived again when they
// change.
type Derivation[T any] struct {
	// Name is that of the value in the log, and of the part in reports of panics.
	Name string
	// Read derives the value. Its transaction notes what it reads: a change of a row
	// that could not have changed the result runs nothing.
	Read func(*Tx) (T, error)
	// Use takes the value, and reports when to derive it again though no row changed;
	// the zero time is never.
	Use func(context.Context, T) (next time.Time, err error)
	// Tick is the longest time between two runs; 0: 30 s.
	Tick time.Duration
	// Wake runs it besides; nil: only rows do.
	Wake <-chan struct{}
	Log  *slog.Logger
}

// After an error a value is derived again after a pause, which doubles with each
// further one. It stays short: meanwhile routes, or what runs, are not as the rows
// want them, and what failed costs a read and a line in the log.
const (
	retryMin = time.Second
	retryMax = 5 * time.Second
)

// defaultTick is how long a lost signal goes unnoticed, and what Use has set can
// be otherwise.
const defaultTick = 30 * time.Second

// Derive keeps a value current until ctx ends: it runs d when it begins, each time
// that rows which Read read change, at the latest after the tick, and after an
// error or a panic with a growing pause. Many changes at once make one run:
// reading takes at most half of the time.
func Derive[T any](ctx context.Context, s *Store, d Derivation[T]) error {
	r := s.Reads()
	defer r.Close()
	retry := retryMin
	for {
		began := time.Now()
		next, took, err := d.run(ctx, r)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			d.log().ErrorContext(ctx, "derived value not updated", "value", d.Name, "err", err)
			next = time.Now().Add(retry)
			retry = min(2*retry, retryMax)
		} else {
			retry = retryMin
		}
		if until := began.Add(cmp.Or(d.Tick, defaultTick)); next.IsZero() || next.After(until) {
			next = until
		}
		if !d.wait(ctx, took, next, r.Stale()) {
			return nil
		}
	}
}

func (d *Derivation[T]) log() *slog.Logger {
	if d.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return d.Log
}

// run derives the value once, and reports how long reading took.
func (d *Derivation[T]) run(ctx context.Context, r *Reads) (next time.Time, took time.Duration, err error) {
	err = fault.Guard(d.Name, func() error {
		var value T
		began := time.Now()
		err := r.Read(ctx, func(tx *Tx) (err error) {
			value, err = d.Read(tx)
			return err
		})
		took = time.Since(began)
		if err == nil {
			next, err = d.Use(ctx, value)
		}
		return err
	})
	return next, took, err
}

// wait waits for the pause and then until the value must be derived again. It returns
// false when ctx ends.
func (d *Derivation[T]) wait(ctx context.Context, pause time.Duration, next time.Time, stale <-chan struct{}) bool {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return false
	}
	due := time.NewTimer(time.Until(next))
	defer due.Stop()
	select {
	case <-stale:
	case <-d.Wake:
	case <-due.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// Always makes a Use of a function that only rows run again.
func Always[T any](use func(context.Context, T) error) func(context.Context, T) (time.Time, error) {
	return func(ctx context.Context, value T) (time.Time, error) { return time.Time{}, use(ctx, value) }
}

// DeriveOnce derives a value and uses it once, leaving out rows as Derive does.
func DeriveOnce[T any](ctx context.Context, s *Store, read func(*Tx) (T, error), use func(context.Context, T) error) error {
	r := s.Reads()
	defer r.Close()
	var value T
	err := r.Read(ctx, func(tx *Tx) (err error) {
		value, err = read(tx)
		return err
	})
	if err != nil {
		return err
	}
	return use(ctx, value)
}
