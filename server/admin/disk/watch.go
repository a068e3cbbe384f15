package disk

import (
	"context"
	"time"
)

const (
	watchInterval = 5 * time.Second
	// emptyPause is how long caches are not measured again after the last time found too
	// little to delete.
	emptyPause = time.Minute
	// beyondPart of the mark is freed beyond it, so that not every small write has caches
	// deleted again.
	beyondPart = 10
)

// Watch deletes caches while less than the low-water mark is free, until ctx ends.
func (k *Keeper) Watch(ctx context.Context) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	w := watch{Keeper: k}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.look(ctx, time.Now()); err != nil && ctx.Err() == nil {
			k.Stacks.Log.ErrorContext(ctx, "the disk is short, and caches were not deleted", "err", err)
			w.next = time.Now().Add(emptyPause)
		}
	}
}

// watch remembers what was said.
type watch struct {
	*Keeper
	short bool      // the disk is short and nothing was left to delete
	next  time.Time // when caches are measured again
}

func (w *watch) look(ctx context.Context, now time.Time) error {
	total, free, err := space(w.Dir.Path())
	if err != nil {
		return err
	}
	mark := w.lowWater(total)
	if free >= mark {
		w.short, w.next = false, time.Time{}
		return nil
	}
	if now.Before(w.next) {
		return nil
	}
	gone, err := w.reclaim(ctx, int64(mark-free+mark/beyondPart), false) //nolint:gosec // at most the size of a disk
	for _, r := range gone {
		w.Stacks.Log.WarnContext(ctx, "the disk is short: caches were deleted", "what", r.Name, "count", r.Count, "bytes", r.Bytes, "free", free, "low_water", mark)
	}
	if err != nil {
		return err
	}
	if _, free, err = space(w.Dir.Path()); err != nil || free >= mark {
		return err
	}
	w.next = now.Add(emptyPause)
	if !w.short {
		w.short = true
		w.Stacks.Log.WarnContext(ctx, "the disk is short, and no cache is left to delete: 'cupola disk' shows what takes room", "free", free, "low_water", mark)
	}
	return nil
}
