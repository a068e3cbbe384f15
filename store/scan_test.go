package store

import (
	"database/sql/driver"
	"errors"
	"testing"

	"cupola/runtime/fault"
)

// broken is a column that panics.
type broken struct{}

func (broken) Value() (driver.Value, error) { panic("broken value") }
func (broken) Scan(any) error               { panic("broken scan") }

// TestPanicOfAColumnBlocksNobody wants the writes and reads after a panic of a
// column, which database/sql would call while it holds the transaction.
func TestPanicOfAColumnBlocksNobody(t *testing.T) {
	s := openTest(t)
	uses := map[string]func(*Tx) error{
		"exec": func(tx *Tx) error {
			_, err := tx.sql.ExecContext(tx.ctx, "SELECT ?", broken{})
			return err
		},
		"query": func(tx *Tx) error {
			_, err := tx.sql.QueryContext(tx.ctx, "SELECT ?", broken{})
			return err
		},
		"rows": func(tx *Tx) error {
			rows, err := tx.sql.QueryContext(tx.ctx, "SELECT 1")
			if err != nil {
				return err
			}
			defer rows.Close()
			rows.Next()
			return rows.Scan(broken{})
		},
		"row": func(tx *Tx) error { return tx.sql.QueryRowContext(tx.ctx, "SELECT 1").Scan(broken{}) },
	}
	for name, use := range uses {
		for which, do := range map[string]func(func(*Tx) error) error{
			"write": func(f func(*Tx) error) error { return s.Write(t.Context(), f) },
			"read":  func(f func(*Tx) error) error { return s.Read(t.Context(), f) },
		} {
			for range 20 { // more than there are connections
				err := fault.Guard("test", func() error { return do(use) })
				if _, ok := errors.AsType[*fault.Panic](err); !ok {
					t.Fatalf("%s in a %s: got %v; want the panic", name, which, err)
				}
			}
		}
		write(t, s, insertOrg(name))
	}
	if got := len(orgNames(t, s)); got != len(uses) {
		t.Errorf("%d orgs of %d are there", got, len(uses))
	}
}
