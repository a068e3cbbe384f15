package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"time"

	"cupola/runtime/fairqueue"
)

// Bounds of a batch. No writer waits for others to come: a batch ends when no
// write waits to join it. Users share one, but a user's second write joins one
// with other users' only while all took no longer than the last commit did: who
// writes much does not keep the others' answers back.
const (
	maxBatch     = 64                     // writes
	maxBatchTime = 25 * time.Millisecond  // from the first write's begin until none joins any longer
	minBatchTime = 2 * time.Millisecond   // likewise, of second writes of one of several users
	longWrite    = 250 * time.Millisecond // of one write, while others wait: longer is logged
)

// errUnfinished is the error of a batch in whose end SQLite panics.
var errUnfinished = errors.New("the transaction was not finished")

type writerKey struct{}

// As says for whom the writes in ctx are. Those who wait to write take turns,
// whatever the number and length of one's writes. A user is a GUID; a loop of
// the daemon has a name.
func As(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, writerKey{}, user)
}

// batch is a transaction that the functions of several Write calls share, so
// that they share what a commit costs.
type batch struct {
	tx     *transaction
	begun  time.Time
	joined int
	users  map[string]bool // whose writes joined
	writes []*Tx           // of those that returned nil, in order
	done   chan struct{}   // closed when the batch is committed, or rolled back
	err    error           // why it was rolled back; to be read after done
}

// Write runs f in the writing transaction and keeps what it wrote when f returns
// nil. When Write returns nil, that is on the disk. No one else can write while
// f runs: keep it short, and do nothing in it but SQL.
//
// Other functions may run before and after f in the same transaction. What one
// of them wrote is taken back alone when it fails or panics; all of them fail
// when the commit does. Once f has begun it is not interrupted by ctx's end,
// which SQLite would answer by taking back what the others wrote.
func (s *Store) Write(ctx context.Context, f func(*Tx) error) error {
	user, _ := ctx.Value(writerKey{}).(string)
	slot, err := s.writers.Acquire(ctx, user)
	if err != nil {
		return ctx.Err()
	}
	defer slot.Release() // also when what passes it on panics: the next write goes on with the batch
	b, err := s.join(ctx, slot, user, f)
	if b == nil {
		return nameFault(err)
	}
	<-b.done // f's error too may tell of what others wrote
	if b.err != nil {
		return b.err
	}
	return nameFault(err)
}

// join runs f in the batch and passes the writer on.
func (s *Store) join(ctx context.Context, slot *fairqueue.Slot, user string, f func(*Tx) error) (*batch, error) {
	defer s.passOn(slot)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.batch == nil {
		tx, err := begin(context.WithoutCancel(ctx), s.writer, "BEGIN IMMEDIATE")
		if err != nil {
			return nil, err
		}
		s.batch = &batch{tx: tx, begun: time.Now(), users: map[string]bool{}, done: make(chan struct{})}
	}
	s.batch.users[user] = true
	tx := s.newTx(context.WithoutCancel(ctx), s.batch.tx)
	defer s.measure(tx, time.Now(), f)
	s.writing = tx
	defer func() { s.writing = nil }()
	return s.batch, s.batch.run(tx, f)
}

// passOn lets the next write join the batch. Where none waits, or the batch is
// full, it is committed, and the caller keeps the writer.
func (s *Store) passOn(slot *fairqueue.Slot) {
	passed := false
	defer func() {
		if !passed {
			s.endBatch()
		}
	}()
	passed = s.batch != nil && !s.full(s.batch, slot) && slot.PassOn()
}

// full reports whether no more writes may join. The caller has the writer.
func (s *Store) full(b *batch, slot *fairqueue.Slot) bool {
	took := time.Since(b.begun)
	if b.err != nil || b.joined >= maxBatch || took > maxBatchTime {
		return true
	}
	return len(b.users) > 1 && b.users[slot.Next()] && took > max(minBatchTime, s.commitTime)
}

// run runs f within a savepoint.
func (b *batch) run(tx *Tx, f func(*Tx) error) (err error) {
	b.joined++
	if b.err = b.exec("SAVEPOINT one"); b.err != nil {
		return b.err
	}
	kept := false
	defer func() { // when f panics, too
		b.err = errUnfinished
		b.err = b.endSavepoint(kept)
		if b.err != nil && err != nil { // a full disk, for one, makes SQLite roll back all at once
			b.err = nameFault(fmt.Errorf("the transaction was rolled back: %w", err))
		}
	}()
	if err = f(tx); err == nil {
		err = tx.sql.fault
	}
	if err != nil {
		return err
	}
	kept = true
	b.writes = append(b.writes, tx)
	return nil
}

func (b *batch) endSavepoint(kept bool) error {
	if !kept {
		if err := b.exec("ROLLBACK TO one"); err != nil {
			return err
		}
	}
	return b.exec("RELEASE one")
}

// exec runs a statement without which the batch cannot go on.
func (b *batch) exec(statement string) error {
	_, err := b.tx.ExecContext(b.tx.ctx, statement)
	return nameFault(err)
}

// endBatch commits the batch, if there is one, and tells of its changes before
// the writes return. The caller has the writer.
func (s *Store) endBatch() {
	b := s.batch
	if b == nil {
		return
	}
	s.batch = nil
	defer close(b.done)
	if b.err == nil {
		began := time.Now()
		b.err = errUnfinished
		ended := s.feed.committing(b.writes)
		b.err = nameFault(b.tx.Commit())
		ended()
		s.commitTime = time.Since(began)
	}
	if b.err != nil {
		b.tx.Rollback() //nolint:errcheck // SQLite may have done it
		return
	}
	for _, tx := range b.writes {
		s.feed.publish(&tx.log)
		s.watchers.publish(&tx.log)
		s.followers.publish(tx.changes)
	}
	s.checkpoints.committed()
}

// measure tells what f did, and logs it where others waited long for it.
func (s *Store) measure(tx *Tx, begun time.Time, f func(*Tx) error) {
	took := time.Since(begun)
	if report := s.held.Load(); report != nil {
		(*report)(Held{tx.sql.own, took})
	}
	waiting := s.writers.Waiting()
	if took <= longWrite || waiting == 0 {
		return
	}
	s.long.Add(1)
	user, _ := tx.ctx.Value(writerKey{}).(string)
	s.log.WarnContext(tx.ctx, "a long write held up others", slog.Duration("took", took), slog.Int("waiting", waiting), slog.String("user", user),
		slog.String("function", runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()))
}

// LongWrites is how many writes took longer than 250 ms while others waited.
func (s *Store) LongWrites() int64 { return s.long.Load() }

// WaitingWrites is how many writes wait for their turn.
func (s *Store) WaitingWrites() int { return s.writers.Waiting() }
