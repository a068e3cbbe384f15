package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Depth says how much of a database Check reads.
type Depth string

// The depths. Quick reads every page once; Full also compares each index with
// its table, which takes several times as long.
const (
	Quick Depth = "quick_check"
	Full  Depth = "integrity_check"
)

// Check looks for damage while others read and write. It returns ErrCorrupt
// with what SQLite found first.
func (s *Store) Check(ctx context.Context, d Depth) error {
	// A separate connection, so that no query of the API waits for it.
	db, err := open(filepath.Join(s.dir, DatabaseFile), "_pragma=query_only(1)"+s.mode)
	if err != nil {
		return err
	}
	var said string
	err = db.QueryRowContext(ctx, "PRAGMA "+string(d)+"(1)").Scan(&said)
	if err == nil && said != "ok" {
		err = fmt.Errorf("%w: %s", ErrCorrupt, said)
	}
	return nameFault(errors.Join(err, db.Close()))
}

// Size is about how many bytes a copy of the database takes.
func (s *Store) Size() (sum int64, err error) {
	for _, name := range []string{DatabaseFile, DatabaseFile + "-wal"} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
			sum += info.Size()
		}
	}
	if sum == 0 {
		return 0, fmt.Errorf("the database in %s is gone", s.dir)
	}
	return sum, nil
}
