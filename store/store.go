package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"cupola/runtime/durable"
	"cupola/runtime/fairqueue"
)

// Config says where a Store lies.
type Config struct {
	Dir string       // made when absent, 0700
	Log *slog.Logger // nil: discards
}

// Store is the database. It is safe for concurrent use.
type Store struct {
	dir      string
	writer   *sql.DB // one connection: SQLite has one writer
	reader   *sql.DB
	seal     *sealer
	feed     *feed
	schema   *schema // as it is since Open
	writing  *Tx     // the write whose function runs; it belongs to who has the writer
	compared compared
	writers  *fairqueue.Queue // who has its one slot has writer and batch
	batch    *batch           // the transaction that writes may join; nil: none
	// commitTime is how long the last commit took. Like batch, it belongs to
	// who has the writer.
	commitTime  time.Duration
	checkpoints *checkpointer
	pages       *pageLog
	followers   *followers
	watchers    watchers
	// mode adds to how the database is opened. A full disk has no room for the
	// 32 kB file by which processes share a write-ahead log; SQLite's unix-excl
	// keeps that in memory, and other processes out.
	mode string
	log  *slog.Logger
	now  func() time.Time

	statements atomic.Int64
	held       atomic.Pointer[func(Held)]
	compete    atomic.Pointer[func() bool]
	long       atomic.Int64 // writes
	damaged    *damagedRows
}

// Held is what the function of a Write did while no other could write.
type Held struct {
	Statements int64
	Time       time.Duration
}

// OnWrite calls f after the function of each Write: tests see by it that
// none takes long.
func (s *Store) OnWrite(f func(Held)) { s.held.Store(&f) }

// PauseWhile has transactions let other goroutines run now and then while competing
// reports that several users do: a write for which another waits goes on instead.
func (s *Store) PauseWhile(competing func() bool) { s.compete.Store(&competing) }

func (s *Store) competing() bool {
	f := s.compete.Load()
	return f != nil && (*f)()
}

// Open opens the database below c.Dir, makes it when there is none and brings
// its schema up to date. A file of a newer cupola is refused.
func Open(c Config) (*Store, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := durable.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	seal, err := openSealer(filepath.Join(c.Dir, KeyFile))
	if err != nil {
		return nil, err
	}
	if err := protect(filepath.Join(c.Dir, DatabaseFile)); err != nil {
		return nil, err
	}
	s := &Store{dir: c.Dir, seal: seal, feed: &feed{reads: map[*Reads]bool{}}, compared: compared{n: map[string]int{}}, damaged: newDamagedRows(c.Log), writers: fairqueue.New(1, 1), followers: newFollowers(), watchers: watchers{all: map[*watcher]bool{}}, log: c.Log, now: time.Now}
	err = s.openPools()
	if errors.Is(err, ErrFull) {
		s.mode = "&vfs=unix-excl"
		err = s.openPools()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openPools opens the writer, which migrates, and the readers.
func (s *Store) openPools() error {
	file := filepath.Join(s.dir, DatabaseFile)
	writer, err := s.openHooked(dsn(file, "_txlock=immediate&_pragma=wal_autocheckpoint(0)"+s.mode))
	if err != nil {
		return err
	}
	writer.SetMaxOpenConns(1)
	s.writer = writer
	if err := s.migrate(file); err != nil {
		writer.Close()
		return fmt.Errorf("migrate %s: %w", file, nameFault(err))
	}
	if s.schema, err = readSchema(writer); err != nil {
		writer.Close()
		return nameFault(err)
	}
	c, err := sqlite.NewConnector(dsn(file, "_pragma=query_only(1)"+s.mode))
	if err != nil {
		writer.Close()
		return err
	}
	s.reader = sql.OpenDB(keeper{c, keptReads, s.competing})
	s.reader.SetMaxOpenConns(maxReaders())
	s.reader.SetMaxIdleConns(maxReaders()) // each new connection reads the schema
	err = s.openPageLog(file)
	if err == nil {
		err = s.startCheckpoints(file)
	}
	if err != nil {
		return errors.Join(err, s.reader.Close(), writer.Close())
	}
	return nil
}

// protect makes the file of a database where there is none, and keeps all others
// than its owner from it and the files that SQLite puts next to it with its mode.
func protect(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return err
	}
	for _, beside := range []string{file + "-wal", file + "-shm"} {
		if err := os.Chmod(beside, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return durable.Sync(filepath.Dir(file))
}

func open(file, extra string) (*sql.DB, error) { return sql.Open("sqlite", dsn(file, extra)) }

// dsn names a database and how it is opened. busy_timeout comes first, so that the
// pragmas after it wait for a lock too. FULL: what is committed is on the disk.
func dsn(file, extra string) string {
	return "file:" + (&url.URL{Path: file}).EscapedPath() +
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
		"&_pragma=foreign_keys(1)&_pragma=cache_size(-4000)&" + extra
}

// Context is that of the call that the transaction is of; it does not end before the transaction.
func (tx *Tx) Context() context.Context { return tx.ctx }

// Close closes the database.
func (s *Store) Close() error {
	return errors.Join(s.checkpoints.close(), s.pages.db.Close(), s.reader.Close(), s.writer.Close())
}

// Tx is a transaction. Now is the time at its start: all that one transaction
// writes bears the same time.
type Tx struct {
	Now      time.Time
	ctx      context.Context
	sql      *counted
	seal     *sealer
	schema   *schema
	log      changeLog
	damaged  *damagedRows
	compared *compared
	lenient  bool      // reads leave out what cannot be decoded
	kept     *keptTx   // rows that earlier reads left; nil: none
	left     []*damage // what they left out
	followed bool      // somebody wants changes
	changes  []Change
}

// counted is a transaction of which every statement counts.
type counted struct {
	tx    *transaction
	n     *atomic.Int64 // statements of all transactions
	own   int64         // statements of this one
	on    *dependencies // where what is read is noted; nil: nowhere
	quiet bool          // nothing is noted for now
	fault error         // of the disk: SQLite may have rolled all back, and what follows must not commit by itself
}

func (c *counted) count() { c.n.Add(1); c.own++ }

func (c *counted) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if c.fault != nil {
		return nil, c.fault
	}
	c.count()
	args, err := valuesOf(args)
	if err != nil {
		return nil, err
	}
	r, err := c.tx.ExecContext(ctx, query, args...)
	c.watch(err)
	return r, err
}

func (c *counted) QueryContext(ctx context.Context, query string, args ...any) (*rows, error) {
	if c.fault != nil {
		return nil, c.fault
	}
	return c.query(ctx, "", nil, query, args)
}

// query runs a SELECT whose rows of a table all meet predicates. Of the other
// tables, and without predicates, it may read every row.
func (c *counted) query(ctx context.Context, table string, all predicates, query string, args []any) (*rows, error) {
	if c.fault != nil {
		return nil, c.fault
	}
	c.count()
	args, err := valuesOf(args)
	if err != nil {
		return nil, err
	}
	if err := c.note(ctx, table, all, query, args); err != nil {
		return nil, err
	}
	r, err := c.tx.QueryContext(ctx, query, args...)
	c.watch(err)
	return r, err
}

func (c *counted) QueryRowContext(ctx context.Context, query string, args ...any) *row {
	c.count()
	args, err := valuesOf(args)
	if err == nil {
		err = c.note(ctx, "", nil, query, args)
	}
	if err != nil {
		return &row{err: err}
	}
	return c.tx.QueryRowContext(ctx, query, args...)
}

// note notes what a statement depends on.
func (c *counted) note(ctx context.Context, table string, all predicates, query string, args []any) error {
	if c.on == nil || c.quiet {
		return nil
	}
	tables, err := c.on.schema.tablesOf(ctx, c.tx, query, args)
	for _, t := range tables {
		if t == table {
			c.on.add(t, all)
		} else {
			c.on.add(t, nil)
		}
	}
	return err
}

// watch notes an error after which the transaction may be gone.
func (c *counted) watch(err error) {
	if named := nameFault(err); isFault(named) {
		c.fault = named
	}
}

// Statements is how many statements the transaction has run.
func (tx *Tx) Statements() int64 { return tx.sql.own }

// Statements is how many statements transactions have run.
func (s *Store) Statements() int64 { return s.statements.Load() }

// Read runs f in a transaction that only reads.
func (s *Store) Read(ctx context.Context, f func(*Tx) error) error {
	t, err := begin(ctx, s.reader, "BEGIN")
	if err != nil {
		return nameFault(err)
	}
	defer t.Rollback() //nolint:errcheck // f has its own error, or Commit
	if err := f(s.newTx(ctx, t)); err != nil {
		return nameFault(err)
	}
	return nameFault(t.Commit())
}

func (s *Store) newTx(ctx context.Context, t *transaction) *Tx {
	return &Tx{Now: s.now().UTC().Truncate(time.Microsecond), ctx: ctx, sql: &counted{tx: t, n: &s.statements}, seal: s.seal, schema: s.schema, damaged: s.damaged, compared: &s.compared, followed: s.followers.any()}
}

// exec runs a statement and tells how many rows it wrote.
func (tx *Tx) exec(query string, args ...any) (int64, error) {
	r, err := tx.sql.ExecContext(tx.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}
