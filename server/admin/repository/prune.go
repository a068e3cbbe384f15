package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"cupola/server/admin/repository/storage"
)

// Keep says how many backups are kept: the last ones, and of each of so many days, weeks
// and months that have one, the newest.
type Keep struct{ Last, Daily, Weekly, Monthly int }

// orphanAge is how long chunks of no snapshot stay, by the storage's clock: those of a
// backup that was cut off are taken by the next one.
const orphanAge = 24 * time.Hour

// dropped lists the snapshots that are not kept. The newest one always is.
func (k Keep) dropped(names []string) (dropped []string) {
	kept := map[string]bool{}
	newest := slices.Sorted(slices.Values(names))
	slices.Reverse(newest)
	for _, name := range newest[:min(max(k.Last, 1), len(newest))] {
		kept[name] = true
	}
	for _, rule := range []struct {
		count  int
		period func(time.Time) string
	}{
		{k.Daily, func(t time.Time) string { return t.Format(time.DateOnly) }},
		{k.Weekly, func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprint(y, w) }},
		{k.Monthly, func(t time.Time) string { return t.Format("2006-01") }},
	} {
		seen := map[string]bool{}
		for _, name := range newest {
			made, _ := time.Parse(stamp, name)
			period := rule.period(made)
			if seen[period] || len(seen) >= rule.count {
				continue
			}
			seen[period], kept[name] = true, true
		}
	}
	for _, name := range names {
		if !kept[name] {
			dropped = append(dropped, name)
		}
	}
	return dropped
}

// Prune removes the snapshots that are not kept, the chunks of none, and the journals of
// all but the last ones. Nothing is removed if a snapshot that stays cannot be read.
func (r *Repository) Prune(ctx context.Context, k Keep) (removed []string, err error) {
	names, err := r.Names(ctx)
	if err != nil {
		return nil, err
	}
	removed = k.dropped(names)
	used := map[string]bool{}
	for _, name := range names {
		if slices.Contains(removed, name) {
			continue
		}
		s, err := r.Find(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, c := range s.Chunks {
			used[c.ID] = true
		}
	}
	for _, name := range removed {
		if err := r.storage.Remove(ctx, path.Join(snapshots, name+snapSuffix)); err != nil {
			return nil, err
		}
	}
	err = r.dropJournals(ctx, names[max(0, len(names)-max(k.Last, 1)):])
	return removed, errors.Join(err, r.collect(ctx, used))
}

// collect removes the chunks that are not used and what is half of an object, if they are old: compared with the
// newest object, since the clock here may be wrong.
func (r *Repository) collect(ctx context.Context, used map[string]bool) error {
	var all []storage.Object
	for _, folder := range []string{chunks, snapshots} {
		err := r.storage.List(ctx, folder, func(o storage.Object) error {
			if chunkName().MatchString(o.Name) || o.Half() {
				all = append(all, o)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	newest := slices.MaxFunc(all, func(a, b storage.Object) int { return cmp.Compare(a.Modified.UnixNano(), b.Modified.UnixNano()) }).Modified
	for _, o := range all {
		if !o.Half() && used[idOf(o.Name)] || newest.Sub(o.Modified) < orphanAge {
			continue
		}
		if err := r.storage.Remove(ctx, o.Name); err != nil {
			return err
		}
	}
	return nil
}
