package server

import (
	"context"
	"sync"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/reconcile"
)

// draining is a cell whose containers are stopped only when the router leads to
// them no longer and the requests under way have been answered, or drainTime has
// passed. Until then they are stopping to whoever looks.
type draining struct {
	reconcile.Cell
	ctx context.Context // ends what still waits: the next daemon stops it
	// settle waits until no request is, or can come to be, under way to an
	// instance.
	settle func(ctx context.Context, instanceGUID string) error

	mu    sync.Mutex
	waits map[string]bool // by container GUID; true: the cell was told
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
	ctx, cancel := context.WithTimeout(d.ctx, drainTime)
	defer cancel()
	// Who is not done by now is cut off.
	_ = fault.Guard("draining", func() error { return d.settle(ctx, guid) })
	if d.ctx.Err() != nil {
		return
	}
	d.Cell.Stop(guid)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits[guid] = true
}

// Containers are the cell's.
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
	for guid, told := range d.waits {
		if told && !there[guid] {
			delete(d.waits, guid)
		}
	}
	return list
}
