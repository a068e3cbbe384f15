package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"

	"cupola/runtime/fault"
)

// A checkpoint copies what the write-ahead log has into the database, and takes
// longer than most writes. SQLite makes one in the commit that fills the log, and
// the answers of that commit wait; here a goroutine makes it, concurrently with writes.
const (
	checkpointCommits = 32   // after which the log's length is looked at
	checkpointPages   = 1000 // of the log that are not in the database yet; SQLite's own limit
	// maxLogPages is the length of the log at which writes wait for the checkpoint's
	// end: SQLite begins the log again only when all of it is in the database.
	maxLogPages = 4 * checkpointPages
)

// checkpointer makes the checkpoints of a Store.
type checkpointer struct {
	s       *Store
	db      *sql.DB
	commits int           // since the last wake; guarded by the writer
	wake    chan struct{} // holds one
	stop    context.CancelFunc
	stopped chan struct{}
}

// logState is how many pages of the log there are, and are in the database.
type logState struct{ pages, copied int }

func (s *Store) startCheckpoints(file string) error {
	db, err := open(file, "_pragma=wal_autocheckpoint(0)"+s.mode)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	ctx, stop := context.WithCancel(context.Background())
	c := &checkpointer{s: s, db: db, wake: make(chan struct{}, 1), stop: stop, stopped: make(chan struct{})}
	s.checkpoints = c
	fault.Go("store", func() {
		defer close(c.stopped)
		_ = fault.Loop(ctx, "store", c.run)()
	})
	return nil
}

// committed wakes the checkpointer now and then. The caller has the writer.
func (c *checkpointer) committed() {
	if c.commits++; c.commits < checkpointCommits {
		return
	}
	c.commits = 0
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *checkpointer) run(ctx context.Context) error {
	failing := false
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return nil
		}
		err := c.shorten(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			c.s.log.ErrorContext(ctx, "the write-ahead log is not copied into the database; it grows until it is", slog.Any("err", err))
		}
		failing = err != nil
	}
}

// shorten makes a checkpoint if the log is long. If the log grew too long all the same,
// it makes one that blocks writes.
func (c *checkpointer) shorten(ctx context.Context) error {
	log, err := c.checkpoint(ctx, "NOOP")
	if err != nil || log.pages-log.copied < checkpointPages {
		return err
	}
	if log, err = c.checkpointNoted(ctx); err != nil || log.pages < maxLogPages {
		return err
	}
	slot, err := c.s.writers.Acquire(ctx, "checkpoint")
	if err != nil {
		return err
	}
	defer slot.Release()
	c.s.endBatch()
	c.s.pages.scan(ctx)
	_, err = c.checkpoint(ctx, "PASSIVE")
	return err
}

// checkpointNoted makes a checkpoint, concurrently with writes, of the commits whose pages were noted.
func (c *checkpointer) checkpointNoted(ctx context.Context) (log logState, err error) {
	t, err := c.s.pages.pin(ctx, func() {})
	if err != nil {
		return log, err
	}
	log, err = c.checkpoint(ctx, "PASSIVE")
	return log, errors.Join(err, nameFault(t.Rollback()))
}

// checkpoint makes a checkpoint of a mode of SQLite's.
func (c *checkpointer) checkpoint(ctx context.Context, mode string) (log logState, err error) {
	var busy int
	err = c.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log.pages, &log.copied)
	return log, nameFault(err)
}

func (c *checkpointer) close() error {
	c.stop()
	<-c.stopped
	return c.db.Close()
}
