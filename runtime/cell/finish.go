package cell

import (
	"cmp"
	"context"
	"slices"

	"cupola/runtime/lrp"
)

// finish takes down a container whose program has ended, and reports it. Each
// part is recorded before the next begins, so that after a kill the next
// daemon continues there.
func (i *instance) finish(ctx context.Context, end ending) {
	i.trySave(func(r *record) { r.Phase, r.Ready, r.Ending = lrp.PhaseExited, false, &end })
	i.collectAndTakeDown(ctx)
}

// collectAndTakeDown collects what the container leaves behind, unless that was done, and
// takes it down.
func (i *instance) collectAndTakeDown(ctx context.Context) {
	if rec := i.record(); i.spec.Kind == lrp.KindTask && !rec.Collected {
		result, err := i.collect(*rec.Ending)
		i.trySave(func(r *record) {
			r.Result, r.Collected = result, true
			if err != nil {
				r.Ending.Failed, r.Ending.Reasons = true, append(r.Ending.Reasons, reason(err))
			}
		})
	}
	i.logf("Cell %s destroying container for instance %s", i.cellID(), i.guid())
	i.update(func(r *record) { r.Address = "" })
	err := i.cell.takeDown(ctx, i.guid())
	if err != nil {
		i.errorf("Cell %s failed to destroy container for instance %s", i.cellID(), i.guid())
	} else {
		i.logf("Cell %s successfully destroyed container for instance %s", i.cellID(), i.guid())
	}
	i.reportEnd()
	i.trySave(func(r *record) { r.Reported = true })
	i.cell.discarded(ctx, i.guid(), err)
}

// reportEnd sends the last event.
func (i *instance) reportEnd() {
	rec := i.record()
	e := i.event(lrp.EventExited)
	e.Exit, e.Result = i.exit(*rec.Ending), rec.Result
	i.trace.end(e.Exit.Reason, e.Result)
	if !e.Exit.Failed {
		e.Outputs = slices.SortedFunc(slices.Values(rec.Outputs), func(a, b lrp.Blob) int { return cmp.Compare(a.Name, b.Name) })
	}
	i.cell.cfg.Events(e)
}
