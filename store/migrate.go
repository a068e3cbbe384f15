package store

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migration is a file of migrations/.
type migration struct {
	number int
	path   string
}

// migrate runs the migrations the file does not have yet, each in a
// transaction of its own, forward only, in the order of their numbers. Numbers
// may have gaps that a later cupola fills: which ones a file has is a table in
// it, and user_version is the highest. Before migrate touches a file that holds
// rows it copies it to <file>.v<N>.
func (s *Store) migrate(file string) error {
	have, highest, err := s.migrated()
	if err != nil {
		return err
	}
	all, err := known()
	if err != nil {
		return err
	}
	if newest := all[len(all)-1].number; highest > newest {
		return fmt.Errorf("the database is of a newer cupola (schema %d, this one knows %d): run that one, or restore the copy it made before it migrated", highest, newest)
	}
	fresh := highest == 0
	for _, m := range all {
		if have[m.number] {
			continue
		}
		if !fresh {
			if err := s.backup(fmt.Sprintf("%s.v%d", file, highest)); err != nil {
				return err
			}
			fresh = true
		}
		if err := s.step(m, max(highest, m.number)); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		highest = max(highest, m.number)
	}
	return nil
}

// migrated are the numbers of the migrations that the file has, and the
// highest. A file without the table is new, or has all up to its version.
func (s *Store) migrated() (have map[int]bool, highest int, err error) {
	if err := s.writer.QueryRow("PRAGMA user_version").Scan(&highest); err != nil {
		return nil, 0, err
	}
	if _, err := s.writer.Exec("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY) STRICT"); err != nil {
		return nil, 0, err
	}
	if _, err := s.writer.Exec(`WITH RECURSIVE old(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM old WHERE n < ?1)
		INSERT INTO migrations SELECT n FROM old WHERE n <= ?1 AND NOT EXISTS (SELECT 1 FROM migrations)`, highest); err != nil {
		return nil, 0, err
	}
	rows, err := s.writer.Query("SELECT number FROM migrations")
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	have = map[int]bool{}
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			return nil, 0, err
		}
		have[n] = true
	}
	return have, highest, rows.Err()
}

// known are the migrations of this cupola in order.
func known() ([]migration, error) {
	paths, err := fs.Glob(migrations, "migrations/*.sql") // sorted
	var all []migration
	for _, p := range paths {
		digits, _, _ := strings.Cut(path.Base(p), "_")
		n, err := strconv.Atoi(digits)
		if err != nil || len(digits) != 4 || len(all) > 0 && n == all[len(all)-1].number {
			return nil, fmt.Errorf("%s has no number of its own", p)
		}
		all = append(all, migration{n, p})
	}
	return all, err
}

func (s *Store) backup(to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	_, err := s.writer.Exec("VACUUM INTO ?", to)
	return err
}

func (s *Store) step(m migration, version int) error {
	text, err := migrations.ReadFile(m.path)
	if err != nil {
		return err
	}
	tx, err := s.writer.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec(fmt.Sprintf("%s\n;INSERT INTO migrations VALUES (%d);\nPRAGMA user_version = %d", text, m.number, version)); err != nil {
		return err
	}
	return tx.Commit()
}
