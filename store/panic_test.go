package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"cupola/runtime/fault"
	"cupola/store/cf"
)

// panicking is a statement, and rows, of a driver that panics.
type panicking struct{ rows bool }

func (panicking) Close() error                               { return nil }
func (panicking) NumInput() int                              { return -1 }
func (panicking) Exec([]driver.Value) (driver.Result, error) { panic("not called") }
func (panicking) Query([]driver.Value) (driver.Rows, error)  { panic("not called") }
func (panicking) Columns() []string                          { return []string{"one"} }
func (panicking) Next([]driver.Value) error                  { panic("broken row") }

func (panicking) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	panic("broken statement")
}

func (b panicking) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	if b.rows {
		return b, nil
	}
	panic("broken query")
}

// A panic of the driver is that statement's error: database/sql holds locks
// meanwhile, and without the writer's connection nobody could write any more.
func TestDriverThatPanics(t *testing.T) {
	query := func(tx *Tx) error { _, err := tx.texts("SELECT 'broken'"); return err }
	for name, try := range map[string]struct {
		panicking
		f func(*Tx) error
	}{
		"exec":  {panicking{}, func(tx *Tx) error { _, err := tx.exec("SELECT 'broken'"); return err }},
		"query": {panicking{}, query},
		"row":   {panicking{rows: true}, query},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t)
			keptBy(t, s, func(_ *sql.Conn, kept *conn) {
				kept.idle["SELECT 'broken'"] = &statement{Stmt: try.panicking, text: "SELECT 'broken'", used: kept.uses}
			})
			if _, ok := errors.AsType[*fault.Panic](s.Write(t.Context(), try.f)); !ok {
				t.Error("want the panic as an error")
			}
			if err := s.Write(t.Context(), func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Name: "after"}) }); err != nil {
				t.Errorf("the next write: %v", err)
			}
		})
	}
}
