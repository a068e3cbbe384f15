package reconcile

import (
	"context"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
)

// DrainTime bounds the wait for requests in flight before their container is stopped.
const DrainTime = 10 * time.Second

// Draining wraps cell c: it stops a container only when the router no longer routes
// to it and the requests in flight have been answered, or DrainTime has passed. Until then they are reported as stopping. awaitIdle waits until no request
// is, or can come to be, under way to an instance. When ctx ends, the waits end:
// the next daemon stops these containers.
func Draining(ctx context.Context, c Cell, awaitIdle func(ctx context.Context, instanceGUID string) error) Cell {
	return &draining{Cell: c, ctx: ctx, awaitIdle: awaitIdle, waits: map[string]bool{}}
}

type draining struct {
	Cell
	ctx       context.Context
	awaitIdle func(ctx context.Context, instanceGUID string) error

	mu    sync.Mutex
	waits map[string]bool // by container GUID; true: the cell was asked to drain it
}

// Stop returns at once.
func (d *draining) Stop(guid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, waits := d.waits[guid]; waits {
		return
	}
	d.waits[guid] = false
	fault.Go("draining", func() { d.stop(guid) })
}

func (d *draining) stop(guid string) {
	ctx, cancel := context.WithTimeout(d.ctx, DrainTime)
	defer cancel()
	// Requests that are still in flight are cut off.
	_ = fault.Guard("draining", func() error { return d.awaitIdle(ctx, guid) })
	if d.ctx.Err() != nil {
		return
	}
	d.Cell.Stop(guid)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits[guid] = true
}

// Containers lists the cell's containers.
func (d *draining) Containers() []lrp.ContainerStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.Cell.Containers()
	there := map[string]bool{}
	for i, c := range list {
		there[c.GUID] = true
		if _, waits := d.waits[c.GUID]; waits && c.Phase != lrp.PhaseExited {
			list[i].Phase, list[i].Ready = lrp.PhaseStopping, false
		}
	}
	for guid, drained := range d.waits {
		if drained && !there[guid] {
			delete(d.waits, guid)
		}
	}
	return list
}
