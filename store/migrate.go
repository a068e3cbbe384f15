package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cupola/runtime/durable"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate runs the migrations that the file does not have yet, each in its own
// transaction, forward only. It copies a file that holds rows before it changes it: see
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
	for i := have; i < len(steps); i++ {
		if err := s.step(steps[i], i+1); err != nil {
			return fmt.Errorf("%s: %w", steps[i], err)
		}
	}
	return nil
}

func migrationNames() ([]string, error) { return fs.Glob(migrations, "migrations/*.sql") }

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

func (s *Store) step(name string, version int) error {
	if !strings.HasPrefix(name, fmt.Sprintf("migrations/%04d_", version)) {
		return fmt.Errorf("is not migration %d", version)
	}
	text, err := migrations.ReadFile(name)
	if err != nil {
		return err
	}
	tx, err := s.writer.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec(string(text) + "\nPRAGMA user_version = " + strconv.Itoa(version)); err != nil {
		return err
	}
	return tx.Commit()
}
