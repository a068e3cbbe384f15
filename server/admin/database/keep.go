package database

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cupola/server/admin/archive"
	"cupola/server/datadir"
	"cupola/store"
)

// Keeper checks and copies the database of a data directory.
type Keeper struct {
	Dir   *datadir.Dir
	Store *store.Store
	Log   *slog.Logger
}

// When a copy is made: daily, and an hour after the first one, which holds
// little more than what every cupola begins with.
const (
	interval = 24 * time.Hour
	second   = time.Hour
	look     = 10 * time.Minute // how often the daemon looks whether it is time
)

// Run checks the whole database daily and then makes a copy of it,
// until ctx ends. Of a damaged database there is no copy: those from before stay.
func (k *Keeper) Run(ctx context.Context) error {
	t := time.NewTicker(look)
	defer t.Stop()
	for {
		if k.copyDue(time.Now()) {
			if err := k.copyDatabase(ctx); err != nil && ctx.Err() == nil {
				k.Log.ErrorContext(ctx, "the daily backup of the database was not made", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// copyDue reports whether it is time for a copy. One that is from the future, by
// a clock that was wrong, does not put it off.
func (k *Keeper) copyDue(now time.Time) bool {
	all, err := archive.DatabaseCopies(k.Dir.Path(datadir.DatabaseCopies))
	if err != nil || len(all) == 0 {
		return true
	}
	wait := interval
	if len(all) == 1 {
		wait = second
	}
	age := now.Sub(all[0].Made)
	return age >= wait || age < -look
}

func (k *Keeper) copyDatabase(ctx context.Context) error {
	if err := k.Check(ctx); err != nil {
		return err
	}
	size, err := k.Store.Size()
	if err != nil {
		return err
	}
	made, err := archive.CopyDatabase(ctx, k.Dir.Path(datadir.DatabaseCopies), size, time.Now(), k.Store.Copy)
	if errors.Is(err, archive.ErrNoRoom) {
		k.Log.WarnContext(ctx, "the daily backup of the database was skipped", "err", err)
		return nil
	}
	if err == nil {
		k.Log.InfoContext(ctx, "the database was backed up", "file", made.File, "bytes", made.Bytes)
	}
	return err
}

// Check reads all of the database. The error says how to restore a copy.
func (k *Keeper) Check(ctx context.Context) error {
	return k.Dir.HintRestore(k.Store.Check(ctx, store.Full))
}
