package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"cupola/store/cf"
)

// convert turns the database's errors into those a client can act on.
func convert(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return cf.Errorf(cf.Taken, "%s must be unique", columnsOf(e.Error()))
	}
	return err
}

// columnsOf takes "a.b, a.c" out of "… UNIQUE constraint failed: a.b, a.c (2067)".
func columnsOf(message string) string {
	i := strings.LastIndex(message, "failed: ")
	s, _, _ := strings.Cut(message[i+len("failed: "):], " (")
	return s
}

// IsNotFound reports whether err says that a row does not exist.
func IsNotFound(err error) bool { return isKind(err, cf.ResourceNotFound) }

// IsTaken reports whether err says that a row like it exists.
func IsTaken(err error) bool { return isKind(err, cf.Taken) }

// IsPassing reports whether a query failed before the database answered: SQLite failed,
// or the context or the transaction ended. The rows may exist.
func IsPassing(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, driver.ErrBadConn)
}

func isKind(err error, kind cf.Kind) bool {
	var e *cf.Error
	return errors.As(err, &e) && e.Kind == kind
}
