package cell

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"cupola/runtime/fault"
)

// downTimeout bounds undoing one step. Each has its own time, because the
// caller's is often over, and so that one that hangs takes none from the others.
const downTimeout = 10 * time.Second

// down is a step that is being undone.
type down struct {
	done chan struct{}
	err  error // to be read after done
}

// step is one part of a container. Its down takes the GUID alone and is done
// when nothing is left, also of a container that never had the part.
type step struct {
	name string
	up   func(context.Context) error
	down func(ctx context.Context, guid string) error
}

// steps are the parts of b's container, first to last. The state directory is
// there before the first and goes after the last.
func (b *build) steps() []step {
	c := b.cell
	return []step{
		{"volumes", b.awaitVolumes, nil},
		{"network", b.acquireNetwork, c.releaseNetwork},
		{"root filesystem", b.mountRoot, c.cfg.RootFS.Unmount},
		{"places of volumes", b.showVolumes, c.hideVolumes},
		{"layers", b.extractLayers, nil},
		{"files", b.writeFiles, nil},
		{"memory", b.makeMemory, c.removeMemory},
		{"processes", nil, c.cfg.Containers.Remove}, // which performer starts
	}
}

// bringUp does every step, until one fails or ctx ends.
func (b *build) bringUp(ctx context.Context) error {
	for _, s := range b.steps() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.up == nil {
			continue
		}
		began := time.Now()
		err := s.up(ctx)
		b.trace.step(s.name, "", began, err != nil)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// takeDown undoes every step, last to first. It goes on where one fails, so
// that no part is left because of another.
func (c *Cell) takeDown(ctx context.Context, guid string) error {
	steps := (&build{instance: &instance{cell: c}}).steps()
	var errs []error
	for n := len(steps) - 1; n >= 0; n-- {
		if steps[n].down == nil {
			continue
		}
		if err := c.undo(ctx, guid, steps[n]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", steps[n].name, err))
		}
	}
	return errors.Join(errs...)
}

// undo undoes one step. If that takes too long, it goes on in the background, and the
// next undo of the step waits for it instead of beginning again.
func (c *Cell) undo(ctx context.Context, guid string, s step) error {
	d := c.beginUndo(context.WithoutCancel(ctx), guid, s)
	const slack = time.Second // lets a step that respects its deadline return its error
	late := time.NewTimer(downTimeout + slack)
	defer late.Stop()
	select {
	case <-d.done:
		return d.err
	case <-late.C:
		return fmt.Errorf("it is not done after %s", downTimeout)
	}
}

func (c *Cell) beginUndo(ctx context.Context, guid string, s step) *down {
	key := [2]string{guid, s.name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.downs[key]; d != nil {
		return d
	}
	d := &down{done: make(chan struct{})}
	c.downs[key] = d
	fault.Go("cell", func() {
		ctx, cancel := context.WithTimeout(ctx, downTimeout)
		defer cancel()
		d.err = fault.Guard("cell", func() error { return s.down(ctx, guid) })
		c.mu.Lock()
		delete(c.downs, key)
		c.mu.Unlock()
		close(d.done)
	})
	return d
}

// discard takes down everything of a GUID, with its state.
func (c *Cell) discard(ctx context.Context, guid string) {
	c.discarded(ctx, guid, c.takeDown(ctx, guid))
}

// discarded removes the state of what was taken down. After an error, sweep tries
// again.
func (c *Cell) discarded(ctx context.Context, guid string, err error) {
	if err == nil {
		err = c.removeState(guid)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.unclean, guid)
		return
	}
	c.unclean[guid] = true
	c.cfg.Log.ErrorContext(ctx, "container was not cleared away", "instance_guid", guid, "err", err)
}

// sweep retries the removals that failed in discard.
func (c *Cell) sweep(ctx context.Context) {
	c.mu.Lock()
	guids := slices.Collect(maps.Keys(c.unclean))
	c.mu.Unlock()
	for _, guid := range guids {
		c.discard(ctx, guid)
	}
}
