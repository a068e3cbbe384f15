package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
)

// damage is a row that cannot be decoded.
type damage struct {
	table, key string
	row        any // what could be decoded of it
	err        error
}

// whole returns why a row was left out of a list of this transaction; nil: none
// was. Who deletes what no row names asks it first.
func (tx *Tx) whole() error {
	for _, d := range tx.left {
		return d
	}
	return nil
}

func (t *table) leaveOut(tx *Tx, v any, key string, err error) error {
	if !tx.lenient {
		return err
	}
	tx.leaveOut(&damage{t.name, key, v, err})
	return nil
}

// Error says which row it is, and why it cannot be decoded.
func (d *damage) Error() string { return fmt.Sprintf("read %s %s: %v", d.table, d.key, d.err) }

func (d *damage) Unwrap() error { return d.err }

// IsDamaged reports whether an error is that a row cannot be decoded.
func IsDamaged(err error) bool {
	_, ok := errors.AsType[*damage](err)
	return ok
}

// leaveOut notes and reports a row that cannot be decoded.
func (tx *Tx) leaveOut(d *damage) {
	tx.left = append(tx.left, d)
	tx.damaged.report(tx.ctx, d)
}

// damagedRows are the rows that were reported already: loops read them again and
// again.
type damagedRows struct {
	mu    sync.Mutex
	known map[[2]string]bool // table and key
	log   *slog.Logger
}

func newDamagedRows(log *slog.Logger) *damagedRows {
	return &damagedRows{known: map[[2]string]bool{}, log: log}
}

func (r *damagedRows) report(ctx context.Context, d *damage) {
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
		if column, ok := to[n].(sql.Scanner); ok {
			_ = column.Scan(value) // what cannot be decoded is left out
			continue
		}
		column := reflect.ValueOf(to[n]).Elem()
		switch v := value.(type) {
		case string:
			if column.Kind() == reflect.String {
				column.SetString(v)
			}
		case int64:
			if column.CanInt() {
				column.SetInt(v)
			}
		}
	}
	key, _ = values[0].(string)
	return key
}
