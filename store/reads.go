package store

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// feed tells Reads of the rows that commits change.
type feed struct {
	mu    sync.Mutex
	reads map[*Reads]bool
	begun uint64 // commits
	ended uint64 // the last of begun that others see, unless it failed
}

// committing tells of rows that others see changed at some moment before the returned
// function is called. Who has the writer calls it.
func (f *feed) committing(writes []*Tx) (ended func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	n := f.begun
	for r := range f.reads {
		for _, tx := range writes {
			r.kept.changed(n, tx.log.rows)
		}
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = n
	}
}

// seen is the number of the last commit that a transaction which begins now sees.
func (f *feed) seen() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

func (f *feed) publish(l *changeLog) {
	if len(l.rows) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.reads {
		r.changes(l.rows)
	}
}

// Reads notes which rows a function read last, and tells when a change may change
// what it read. Its methods are for one goroutine at a time, apart from Stale and
// IsStale.
type Reads struct {
	store  *Store
	signal chan struct{}
	kept   keptSets

	mu      sync.Mutex
	stale   bool
	on      *dependencies // of the last Read
	reading bool
	pending []rowChange // committed since the Read under way began
}

// maxPending is how many changes are kept while a Read is under way.
const maxPending = 4 * maxRowChanges

// Reads makes one, which is stale until its first Read. Close it.
func (s *Store) Reads() *Reads {
	r := &Reads{store: s, signal: make(chan struct{}, 1), on: newDependencies(s.schema)}
	r.outdate()
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.feed.reads[r] = true
	return r
}

// Close ends the signals.
func (r *Reads) Close() {
	r.store.feed.mu.Lock()
	defer r.store.feed.mu.Unlock()
	delete(r.store.feed.reads, r)
}

// Stale gets a signal when what the last Read read may have changed. Read takes
// the signal back.
func (r *Reads) Stale() <-chan struct{} { return r.signal }

// IsStale reports whether the rows may have changed since the last Read began, or
// it failed.
func (r *Reads) IsStale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stale
}

// Read runs f in a transaction that only reads, and notes what it reads. A row
// that cannot be decoded is reported and left out of lists: see Damaged. What a
// Read that failed did not come to counts as read.
func (r *Reads) Read(ctx context.Context, f func(*Tx) error) error {
	seen := r.store.feed.seen()
	return r.Noting(r.store.Read)(ctx, func(tx *Tx) error {
		tx.lenient = true
		tx.kept = &keptTx{sets: &r.kept, feed: r.store.feed, seen: seen}
		return f(tx)
	})
}

// Noting makes of Store.Read or Store.Write one that notes what is read, as Read
// does. It fails at a row that cannot be decoded.
func (r *Reads) Noting(run func(context.Context, func(*Tx) error) error) func(context.Context, func(*Tx) error) error {
	return func(ctx context.Context, f func(*Tx) error) error {
		on := newDependencies(r.store.schema)
		r.begin()
		failed := true
		defer func() { r.end(on, failed) }()
		err := run(ctx, func(tx *Tx) error {
			tx.sql.on = on
			return f(tx)
		})
		failed = err != nil
		return err
	}
}

// Until runs look in a transaction that only reads, and again each time that a
// change may have changed what it read, until it is done or fails, or ctx ends.
func (s *Store) Until(ctx context.Context, look func(*Tx) (done bool, err error)) error {
	r := s.Reads()
	defer r.Close()
	for done := false; ; {
		err := r.Noting(s.Read)(context.WithoutCancel(ctx), func(tx *Tx) (err error) {
			done, err = look(tx)
			return err
		})
		if err != nil || done {
			return err
		}
		select {
		case <-r.Stale():
		case <-ctx.Done():
			return nil
		}
	}
}

// TablesOf runs f, and names the tables that it read: what it made of them holds
// while Written counts the same of them.
func (tx *Tx) TablesOf(f func() error) (tables []string, err error) {
	was, on := tx.sql.on, newDependencies(tx.schema)
	tx.sql.on = on
	defer func() {
		if tx.sql.on = was; was != nil {
			was.merge(on)
		}
	}()
	err = f()
	return slices.Collect(maps.Keys(on.tables)), err
}

// Written is how many rows of tables the transaction has written.
func (tx *Tx) Written(tables ...string) (n int) {
	for _, t := range tables {
		n += tx.log.tables[t]
	}
	return n
}

// Unnoted runs f, whose reads of a Reads' transaction are not noted: of rows that
// the caller changes itself, and knows when to look at again.
func (tx *Tx) Unnoted(f func() error) error {
	was := tx.sql.quiet
	tx.sql.quiet = true
	defer func() { tx.sql.quiet = was }()
	return f()
}

// begin comes before the transaction: a commit that it does not see is pending.
func (r *Reads) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.signal:
	default:
	}
	r.stale, r.reading = false, true
}

func (r *Reads) end(on *dependencies, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if failed {
		r.stale = true
		on.merge(r.on)
	}
	pending := r.pending
	r.on, r.reading, r.pending = on, false, nil
	if len(pending) > maxPending || r.changedBy(pending) {
		r.outdate()
	}
}

// changes takes those of a commit.
func (r *Reads) changes(all []rowChange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.reading:
		if len(r.pending) <= maxPending {
			r.pending = append(r.pending, all...)
		}
	case len(r.signal) == 0 && r.changedBy(all):
		r.outdate()
	}
}

func (r *Reads) changedBy(all []rowChange) bool {
	for _, c := range all {
		if r.on.changedBy(c) {
			return true
		}
	}
	return false
}

func (r *Reads) outdate() {
	r.stale = true
	select {
	case r.signal <- struct{}{}:
	default:
	}
}
