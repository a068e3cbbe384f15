package control

import (
	"errors"

	"cupola/store"
)

// partStatements is how many statements a transaction that removes much runs
// before it leaves the rest to the next: some 15 ms.
const partStatements = 150

// ErrMore ends a transaction that has removed enough. What it did stays; the
// next one finds what is left.
var ErrMore = errors.New("the rest is for another transaction")

// BeginPart counts what is removed from now on, in place of all that the
// transaction did.
func (c *Session) BeginPart() { c.heldFrom = c.Tx.Statements() }

// Paused reports whether the transaction has asked brokers for enough.
func (c *Session) Paused() bool { return c.Tx.Statements() >= partStatements }

// EachOf lets f remove each row whose filter has the value, unless the
// transaction has done enough: ErrMore then. f leaves no row that the filter
// still finds.
func EachOf[T any](c *Session, t *store.Table[T], filter, value string, f func(*T) error) error {
	return EachWhere(c, t, map[string][]string{filter: {value}}, f)
}

// EachWhere is EachOf for several filters.
func EachWhere[T any](c *Session, t *store.Table[T], where map[string][]string, f func(*T) error) error {
	for {
		rows, err := t.Some(c.Tx, store.Query{Where: where}, 20)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			if c.Tx.Statements() >= c.heldFrom+partStatements {
				return ErrMore
			}
			if err := f(r); err != nil {
				return err
			}
		}
	}
}
