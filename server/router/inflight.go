package router

import (
	"context"
	"sync/atomic"
)

// inflight counts requests under way.
type inflight struct {
	n    atomic.Int64
	zero chan struct{} // holds a token once n fell to zero
}

func newInflight() *inflight { return &inflight{zero: make(chan struct{}, 1)} }

func (f *inflight) enter() { f.n.Add(1) }

// leave reports whether that was the last one.
func (f *inflight) leave() bool {
	if f.n.Add(-1) != 0 {
		return false
	}
	select {
	case f.zero <- struct{}{}:
	default:
	}
	return true
}

// wait returns nil once nothing is under way, or the error of ctx.
func (f *inflight) wait(ctx context.Context) error {
	for f.n.Load() != 0 {
		select {
		case <-f.zero:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	// Pass the token on: there may be several who wait.
	select {
	case f.zero <- struct{}{}:
	default:
	}
	return nil
}
