package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cupola/rootfs/tree"
	"cupola/server/manifest"
)

// ReclaimRequest says how much to delete.
type ReclaimRequest struct {
	DryRun bool   `help:"Only say what would be deleted."`
	Size   string `help:"Stop when this much is deleted, like 2G; all that is unused by default." placeholder:"SIZE"`
}

// need is the size in bytes; 0 means no limit.
func (r ReclaimRequest) need() (int64, error) {
	if r.Size == "" {
		return 0, nil
	}
	n, ok := manifest.ParseSize(r.Size)
	if !ok || n <= 0 {
		return 0, fmt.Errorf("invalid --size %q: give a size, like 2G", r.Size)
	}
	return n, nil
}

// Reclaimed is what was deleted of one cache.
type Reclaimed struct {
	Name   string    `json:"name"`
	Count  int       `json:"count"`
	Bytes  int64     `json:"bytes"`
	Oldest time.Time `json:"oldest"` // when the first one of them was used last
	Newest time.Time `json:"newest"`
}

// Reclaim deletes caches, those that were not used for longest first. The room is free
// when it returns.
func (k *Keeper) Reclaim(ctx context.Context, in ReclaimRequest) ([]Reclaimed, error) {
	need, err := in.need()
	if err != nil {
		return nil, err
	}
	return k.reclaim(ctx, need, in.DryRun)
}

func (k *Keeper) reclaim(ctx context.Context, need int64, dry bool) ([]Reclaimed, error) {
	k.turn.Lock()
	defer k.turn.Unlock()
	caches := k.caches()
	all, err := unusedOf(ctx, caches)
	if err != nil {
		return nil, err
	}
	chosen := choose(all, need)
	out := []Reclaimed{}
	for _, c := range caches {
		names, sum := namesIn(chosen, c.name)
		if len(names) == 0 {
			continue
		}
		out = append(out, sum)
		if dry {
			continue
		}
		if err := c.remove(ctx, names); err != nil {
			return out, fmt.Errorf("delete %s: %w", c.name, err)
		}
	}
	if dry {
		return out, nil
	}
	return out, k.Stacks.Roots.Emptied(ctx)
}

// entry is something unused in a cache.
type entry struct {
	tree.Unused
	cache string
}

// unusedOf lists what is unused. A cache that cannot be read leaves the others
// reclaimable.
func unusedOf(ctx context.Context, caches []cache) (all []entry, err error) {
	var errs []error
	for _, c := range caches {
		some, err := c.unused(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("measure %s: %w", c.name, err))
			continue
		}
		for _, u := range some {
			all = append(all, entry{u, c.name})
		}
	}
	if len(all) > 0 && ctx.Err() == nil {
		return all, nil
	}
	return all, errors.Join(errs...)
}

// choose takes those that were not used for longest, of so many bytes together; 0 takes
// all.
func choose(all []entry, need int64) (chosen []entry) {
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(a.Used.Compare(b.Used), cmp.Compare(a.cache, b.cache), cmp.Compare(a.Name, b.Name))
	})
	var sum int64
	for _, e := range all {
		if need > 0 && sum >= need {
			break
		}
		sum += e.Bytes
		chosen = append(chosen, e)
	}
	return chosen
}

func namesIn(chosen []entry, cache string) (names []string, r Reclaimed) {
	r.Name = cache
	for _, e := range chosen { // the oldest first
		if e.cache != cache {
			continue
		}
		if len(names) == 0 {
			r.Oldest = e.Used.UTC()
		}
		names = append(names, e.Name)
		r.Count, r.Bytes, r.Newest = r.Count+1, r.Bytes+e.Bytes, e.Used.UTC()
	}
	return names, r
}
