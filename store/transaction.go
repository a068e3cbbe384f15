package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// transaction is one of SQLite's, on a separate connection. database/sql has
// such a type, too, but that starts a goroutine for each query, and the driver
// another, to end it with the context: 20,000 a second while tenants write,
// which others' requests had to wait for. Here a query ends with its context
// when the next row is read.
type transaction struct {
	ctx  context.Context
	conn *sql.Conn
	open []*rows
}

// begin takes a connection and begins a transaction with a statement.
func begin(ctx context.Context, db *sql.DB, statement string) (*transaction, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &transaction{ctx: ctx, conn: conn}
	if _, err := t.ExecContext(ctx, statement); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return t, nil
}

// ExecContext runs a statement to its end.
func (t *transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return t.conn.ExecContext(context.WithoutCancel(ctx), query, args...)
}

// QueryContext runs a query. The end of the transaction closes its rows.
func (t *transaction) QueryContext(ctx context.Context, query string, args ...any) (*rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all, err := t.conn.QueryContext(context.WithoutCancel(ctx), query, args...) //nolint:rowserrcheck // the caller's to check
	if err != nil {
		return nil, err
	}
	r := &rows{Rows: all, ctx: ctx, of: t}
	t.open = append(t.open, r)
	return r, nil
}

// QueryRowContext runs a query of one row, which must be scanned.
func (t *transaction) QueryRowContext(ctx context.Context, query string, args ...any) *row {
	if err := ctx.Err(); err != nil {
		return &row{err: err}
	}
	return &row{row: t.conn.QueryRowContext(context.WithoutCancel(ctx), query, args...)}
}

// Commit keeps what the transaction wrote and ends it. When it fails, nothing is
// kept.
func (t *transaction) Commit() error {
	_, err := t.ExecContext(t.ctx, "COMMIT")
	if err != nil {
		return errors.Join(err, t.Rollback())
	}
	return t.close()
}

// Rollback takes back what the transaction wrote and ends it. After its end it
// does nothing.
func (t *transaction) Rollback() error {
	if t.conn == nil {
		return nil
	}
	for _, r := range slices.Clone(t.open) {
		_ = r.Close()
	}
	if _, err := t.ExecContext(context.WithoutCancel(t.ctx), "ROLLBACK"); err != nil && !isEnded(err) {
		return errors.Join(err, t.discard())
	}
	return t.close()
}

// isEnded tells of a rollback's error whether SQLite had rolled back by itself.
func isEnded(err error) bool {
	code, ok := errors.AsType[*sqlite.Error](err)
	return ok && code.Code() == sqlite3.SQLITE_ERROR
}

// discard closes the connection: it is unknown whether its transaction goes on.
func (t *transaction) discard() error {
	err := t.conn.Raw(func(any) error { return driver.ErrBadConn })
	t.conn = nil
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// close gives the connection back.
func (t *transaction) close() error {
	for _, r := range slices.Clone(t.open) {
		_ = r.Close()
	}
	err := t.conn.Close()
	t.conn = nil
	return err
}
