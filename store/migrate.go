package store

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate runs the migrations the file does not have yet, each in a
// transaction of its own, forward only. Before it touches a file that holds
// rows it copies it to <file>.v<N>.
func (s *Store) migrate(file string) error {
	var have int
	if err := s.writer.QueryRow("PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	if have > len(steps) {
		return fmt.Errorf("the database is of a newer cupola (schema %d, this one knows %d): run that one, or restore the copy it made before it migrated", have, len(steps))
	}
	if have > 0 && have < len(steps) {
		if err := s.backup(fmt.Sprintf("%s.v%d", file, have)); err != nil {
			return err
		}
	}
	for i := have; i < len(steps); i++ {
		if err := s.step(steps[i], i+1); err != nil {
			return fmt.Errorf("%s: %w", steps[i], err)
		}
	}
	return nil
}

func (s *Store) backup(to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	_, err := s.writer.Exec("VACUUM INTO ?", to)
	return err
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
