package store

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The faults of the disk under the database. Read, Write and Open return
// errors that errors.Is finds them in; SQLite's own error stays in the chain.
var (
	ErrFull    = errors.New("no space is left for the database")
	ErrIO      = errors.New("the database cannot be read or written")
	ErrCorrupt = errors.New("the database is damaged")
)

// faultOf is the fault of the disk that an error of SQLite tells of, nil where
// it tells of none.
func faultOf(e *sqlite.Error) error {
	switch e.Code() {
	case sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP: // the -shm file could not grow
		return ErrFull
	}
	switch e.Code() & 0xff { // without what extends the code
	case sqlite3.SQLITE_FULL:
		return ErrFull
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return ErrIO
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return ErrCorrupt
	}
	return nil
}

// nameFault adds the fault of the disk that an error tells of to its chain.
func nameFault(err error) error {
	if err == nil || isFault(err) {
		return err
	}
	var e *sqlite.Error
	if errors.As(err, &e) {
		if fault := faultOf(e); fault != nil {
			return fmt.Errorf("%w: %w", fault, err)
		}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

func isFault(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrIO) || errors.Is(err, ErrCorrupt)
}
