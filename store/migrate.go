package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/durable"
)

// migrations are named by the version of the schema that they make; baseline has a script that makes what the migrations up to
// its version make, in a fifth of the time.
//
//go:embed migrations/*.sql baseline/*.sql
var migrations embed.FS

// migrate runs the migrations that the file does not have yet, each in its own
// transaction, forward only; a new file begins with the baseline. It copies a file that holds rows before it changes it: see
// copyBefore.
func (s *Store) migrate(file string) error {
	var have int
	if err := s.writer.QueryRow("PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	steps, err := migrationNames()
	if err != nil {
		return err
	}
	if have > len(steps) {
		return newerError(have, len(steps))
	}
	if have > 0 && have < len(steps) {
		if err := s.copyBefore(file, have+1); err != nil {
			return fmt.Errorf("copy the database before it is migrated: %w", err)
		}
	}
	if have == 0 {
		base, err := baseline()
		if err != nil {
			return err
		}
		return s.step(slices.Concat([]string{base}, steps[versionOf(base):])...)
	}
	for _, name := range steps[have:] {
		if err := s.step(name); err != nil {
			return err
		}
	}
	return nil
}

func migrationNames() ([]string, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	for i, name := range names {
		if versionOf(name) != i+1 {
			return nil, fmt.Errorf("%s is not migration %d", name, i+1)
		}
	}
	return names, err
}

func baseline() (string, error) {
	names, err := fs.Glob(migrations, "baseline/*.sql")
	if err == nil && len(names) != 1 {
		err = fmt.Errorf("got baselines %q; want one", names)
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// versionOf is the version of the schema that a script makes; 0 if its name has none.
func versionOf(name string) int {
	number, _, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".sql"), "_")
	version, _ := strconv.Atoi(number)
	return version
}

func newerError(have, known int) error {
	return fmt.Errorf("the database is of a newer cupola (schema %d, this one knows %d): run that one, or restore the copy it made before it migrated", have, known)
}

// keptCopies is how many copies of databases from before migrations are kept.
const keptCopies = 3

// beforeMigration is what the copy of a database is called that was made before
// a migration.
func beforeMigration(file string, migration int) string {
	return fmt.Sprintf("%s.before-%04d", file, migration)
}

// copyBefore copies the database aside, as <file>.before-<migration>, and drops
// the oldest of such copies. A crash leaves no half of a copy under that name.
func (s *Store) copyBefore(file string, migration int) error {
	to := beforeMigration(file, migration)
	if err := removeIfThere(to + ".new"); err != nil {
		return err
	}
	if err := vacuumInto(context.Background(), s.writer, to+".new"); err != nil {
		return err
	}
	if err := durable.Rename(to+".new", to); err != nil {
		return err
	}
	copies, err := filepath.Glob(file + ".before-[0-9][0-9][0-9][0-9]")
	if err != nil {
		return err
	}
	for len(copies) > keptCopies { // in the order of their numbers
		if err := os.Remove(copies[0]); err != nil {
			return err
		}
		copies = copies[1:]
	}
	return nil
}

// step runs scripts in one transaction.
func (s *Store) step(names ...string) error {
	tx, err := s.writer.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(string(text) + "\nPRAGMA user_version = " + strconv.Itoa(versionOf(name))); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return tx.Commit()
}
