package fault

import (
	"context"
	"sync"
)

// Group runs functions concurrently and waits for all. The zero
// value is a group of any number, of which none ends another.
type Group struct {
	running sync.WaitGroup
	slots   chan struct{}
	cancel  context.CancelCauseFunc

	once sync.Once
	err  error
}

// NewGroup makes a group whose context ends with the first error, or with Wait.
func NewGroup(ctx context.Context) (*Group, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Group{cancel: cancel}, ctx
}

// SetLimit limits the group to n functions at once: Go waits for a place. Call it before Go.
func (g *Group) SetLimit(n int) { g.slots = make(chan struct{}, n) }

// Go calls f in a goroutine. f is one of this package's, which gives a panic as its error.
func (g *Group) Go(f func() error) {
	if g.slots != nil {
		g.slots <- struct{}{}
	}
	g.running.Go(func() {
		if err := f(); err != nil {
			g.once.Do(func() {
				g.err = err
				g.end(err)
			})
		}
		if g.slots != nil {
			<-g.slots
		}
	})
}

func (g *Group) end(err error) {
	if g.cancel != nil {
		g.cancel(err)
	}
}

// Wait waits for all, and returns the first error.
func (g *Group) Wait() error {
	g.running.Wait()
	g.end(g.err)
	return g.err
}
