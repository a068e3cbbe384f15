package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
)

// Columns convert their values here, not in database/sql: that holds locks
// meanwhile, without a defer, so a panic of a column would block the
// transaction's end, and with it every write, for ever.

// valuesOf are the arguments of a statement, with what the columns among them
// keep.
func valuesOf(args []any) ([]any, error) {
	values := slices.Clone(args)
	for n, arg := range args {
		column, ok := arg.(driver.Valuer)
		if !ok {
			continue
		}
		value, err := column.Value()
		if err != nil {
			return nil, err
		}
		values[n] = value
	}
	return values, nil
}

// rows are those of a query.
type rows struct {
	*sql.Rows
	ctx context.Context
	of  *transaction
}

// Next is false after the last row, and when the query's context has ended.
func (r *rows) Next() bool { return r.ctx.Err() == nil && r.Rows.Next() }

// Err is why there are no more rows than there should be.
func (r *rows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.ctx.Err()
}

// Close ends the query. It may be closed twice.
func (r *rows) Close() error {
	if last := len(r.of.open) - 1; last >= 0 && r.of.open[last] == r {
		r.of.open = r.of.open[:last]
	}
	return r.Rows.Close()
}

// Scan reads the columns of a row.
func (r *rows) Scan(to ...any) error { return scan(r.Rows, to) }

// row is the one row of a query.
type row struct {
	row *sql.Row
	err error // instead of a row
}

// Scan reads the columns of the row; sql.ErrNoRows says that there is none.
func (r *row) Scan(to ...any) error {
	if r.err != nil {
		return r.err
	}
	return scan(r.row, to)
}

// texts reads the one column of a query's rows.
func (tx *Tx) texts(query string, args ...any) (all []string, err error) {
	rows, err := tx.sql.QueryContext(tx.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}

// scan reads a row, and then lets columns take their values.
func scan(from interface{ Scan(...any) error }, to []any) error {
	values := slices.Clone(to)
	for n, column := range to {
		if _, ok := column.(sql.Scanner); ok {
			values[n] = new(any)
		}
	}
	if err := from.Scan(values...); err != nil {
		return err
	}
	for n, column := range to {
		scanner, ok := column.(sql.Scanner)
		if !ok {
			continue
		}
		if err := scanner.Scan(*values[n].(*any)); err != nil {
			return err
		}
	}
	return nil
}
