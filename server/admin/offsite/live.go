package offsite

import (
	"context"
	"sync/atomic"

	"cupola/runtime/fault"
)

// Live is a Keeper whose flags can change while it runs.
type Live struct {
	keeper  atomic.Pointer[Keeper]
	changed chan Flags // the last ones
}

// NewLive makes a Live that begins with the flags of a configuration.
func NewLive(c Config) *Live {
	l := &Live{changed: make(chan Flags, 1)}
	l.keeper.Store(New(c))
	return l
}

// Keeper is the one that has the present flags.
func (l *Live) Keeper() *Keeper { return l.keeper.Load() }

// Set changes the flags, which Check has accepted. A backup that is being made is finished with those of before; one that
// waits for its turn is not made.
func (l *Live) Set(f Flags) {
	select {
	case <-l.changed: // others, that have not been taken over
	default:
	}
	select {
	case l.changed <- f:
	default: // another call has newer ones
	}
}

// Run runs the Keeper until ctx ends.
func (l *Live) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.runUntilChange(ctx); err != nil {
			return err
		}
	}
	return nil
}

// runUntilChange runs the Keeper until ctx ends or its flags change.
func (l *Live) runUntilChange(ctx context.Context) error {
	k, changed := l.Keeper(), false
	group, ctx := fault.NewGroup(ctx)
	running, stop := context.WithCancel(ctx)
	defer stop()
	group.Go(fault.ErrFunc("offsite", func() error { return k.Run(running) }))
	group.Go(fault.ErrFunc("offsite", func() error {
		if flags, ok := l.awaitChange(running, k); ok {
			changed = true
			stop()
			l.replace(k, flags)
		}
		return nil
	}))
	if err := group.Wait(); !changed {
		return err
	}
	return nil
}

// awaitChange waits for other flags, and until no backup is being made. If it returns true, it has the turn.
func (l *Live) awaitChange(ctx context.Context, k *Keeper) (f Flags, ok bool) {
	select {
	case f = <-l.changed:
	case <-ctx.Done():
		return f, false
	}
	select {
	case <-k.turn:
		return f, true
	case <-ctx.Done():
		return f, false
	}
}

// replace puts a Keeper with other flags into the place of one, and gives back the turn, which both share.
func (l *Live) replace(k *Keeper, f Flags) {
	c := k.Config
	c.Flags = f
	next := New(c)
	next.turn = k.turn
	k.replaced = true
	l.keeper.Store(next)
	k.turn <- struct{}{}
}
