package fault

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// TestGroupEndsWithTheFirstError has one function fail, and another that waits for the
// context's end.
func TestGroupEndsWithTheFirstError(t *testing.T) {
	first := errors.New("first")
	g, ctx := NewGroup(t.Context())
	g.Go(func() error { <-ctx.Done(); return errors.New("second") })
	g.Go(func() error { return first })
	if err := g.Wait(); err != first || context.Cause(ctx) != first {
		t.Errorf("got %v, with the context's %v; want %v", err, context.Cause(ctx), first)
	}
}

// TestGroupWithoutContext has all run to their end, whatever one returns.
func TestGroupWithoutContext(t *testing.T) {
	var g Group
	var done atomic.Int32
	failed := errors.New("failed")
	g.Go(func() error { return failed })
	for range 10 {
		g.Go(func() error { done.Add(1); return nil })
	}
	if err := g.Wait(); err != failed || done.Load() != 10 {
		t.Errorf("got %v after %d of 10", err, done.Load())
	}
}

// TestGroupLimit has no more run at once than the limit.
func TestGroupLimit(t *testing.T) {
	g, ctx := NewGroup(t.Context())
	g.SetLimit(3)
	var now, most atomic.Int32
	for range 50 {
		g.Go(ErrFunc("test", func() error {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return ctx.Err()
		}))
	}
	if err := g.Wait(); err != nil || most.Load() > 3 || most.Load() < 1 {
		t.Errorf("%d ran at once (%v)", most.Load(), err)
	}
	if ctx.Err() == nil {
		t.Error("the context goes on after Wait")
	}
}
