package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
)

// damage is a row that cannot be decoded.
type damage struct {
	table, key string
	row        any // what could be decoded of it
	err        error
}

// Damaged are the rows that lists of this transaction left out because they
// cannot be decoded, each with what could be. Only a Reads' transaction leaves rows
// out: every other read fails at the first.
func (t *Table[T]) Damaged(tx *Tx) (rows []*T) {
	for _, d := range tx.left {
		if v, ok := d.row.(*T); ok && d.table == t.name {
			rows = append(rows, v)
		}
	}
	return rows
}

// Whole returns why a row was left out of a list of this transaction; nil: none
// was. Who deletes what no row names asks it first.
func (tx *Tx) Whole() error {
	for _, d := range tx.left {
		return d.err
	}
	return nil
}

// LeaveOut reports a row of t whose columns can be read, but not what they hold. It
// returns err where no row is left out.
func (t *Table[T]) LeaveOut(tx *Tx, v *T, key string, err error) error {
	if tx.sql.on == nil {
		return err
	}
	tx.leaveOut(damage{t.name, key, v, fmt.Errorf("read %s %s: %w", t.name, key, err)})
	return nil
}

// leaveOut notes and reports a row that cannot be decoded.
func (tx *Tx) leaveOut(d damage) {
	tx.left = append(tx.left, d)
	tx.damaged.report(tx.ctx, d)
}

// damagedRows are those that were reported already: a row is derived from again
// and again.
type damagedRows struct {
	mu    sync.Mutex
	known map[[2]string]bool // table and key
	log   *slog.Logger
}

func newDamagedRows(log *slog.Logger) *damagedRows {
	return &damagedRows{known: map[[2]string]bool{}, log: log}
}

func (r *damagedRows) report(ctx context.Context, d damage) {
	key := [2]string{d.table, d.key}
	r.mu.Lock()
	known := r.known[key]
	r.known[key] = true
	r.mu.Unlock()
	if !known {
		r.log.ErrorContext(ctx, "row cannot be read and is left out", "table", d.table, "guid", d.key, "err", d.err)
	}
}

// salvage decodes those columns of the current row that can be, and returns the
// first, which names the row.
func (r *rows) salvage(to []any) (key string) {
	values := make([]any, len(to))
	targets := make([]any, len(to))
	for n := range values {
		targets[n] = &values[n]
	}
	if r.Rows.Scan(targets...) != nil {
		return ""
	}
	for n, value := range values {
		switch column := to[n].(type) {
		case sql.Scanner:
			_ = column.Scan(value) // what cannot be decoded is left out
		case *string:
			*column, _ = value.(string)
		case *int:
			n, _ := value.(int64)
			*column = int(n)
		}
	}
	key, _ = values[0].(string)
	return key
}
