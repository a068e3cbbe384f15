package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cupola/runtime/durable"
)

// The files of a database's directory that a backup needs.
const (
	DatabaseFile = "cupola.db"
	KeyFile      = "store.key"
)

// Snapshot writes the database as it is at one moment into dir, with its key,
// while others go on reading and writing.
func (s *Store) Snapshot(ctx context.Context, dir string) error {
	key, err := os.ReadFile(filepath.Join(s.dir, KeyFile))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, KeyFile), key, 0o600); err != nil {
		return err
	}
	return s.Copy(ctx, filepath.Join(dir, DatabaseFile))
}

// Copy writes the database as it is at one moment to a file, which must not be
// there and is on the disk when Copy returns. Others go on meanwhile.
func (s *Store) Copy(ctx context.Context, to string) error {
	// Neither pool: one has a single connection, the other writes nothing.
	db, err := open(filepath.Join(s.dir, DatabaseFile), "_txlock=deferred"+s.mode)
	if err != nil {
		return err
	}
	return nameFault(errors.Join(vacuumInto(ctx, db, to), db.Close()))
}

// vacuumInto copies a database to a file, which is on disk when it returns.
func vacuumInto(ctx context.Context, db *sql.DB, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL, 0o600) // SQLite takes an empty file, with its mode
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return errors.Join(err, removeIfThere(to))
	}
	return durable.Sync(to)
}

func removeIfThere(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Contents describes a database.
type Contents struct {
	Schema int      // the number of its last migration
	Blobs  []string // digests of the blobs that rows name
	Images []string // references, by digest, of the images that apps and builds run on
}

// Inspect checks the database of a snapshot in dir to the last page: that it is
// whole, has the schema that this cupola makes, and is the one its key belongs
// to. It migrates one of an older cupola: dir must be a copy.
func Inspect(ctx context.Context, dir string) (Contents, error) {
	var c Contents
	for _, name := range []string{DatabaseFile, KeyFile} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			return c, fmt.Errorf("%s is missing", name)
		}
	}
	var err error
	if c.Schema, err = checkFile(ctx, filepath.Join(dir, DatabaseFile)); err != nil {
		return c, fmt.Errorf("the database is not sound: %w", err)
	}
	s, err := Open(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return c, err
	}
	blobs := map[string]bool{}
	err = s.Read(ctx, func(tx *Tx) (err error) {
		if err := tx.unsealAll(); err != nil {
			return err
		}
		if err := tx.NamedBlobs(blobs); err != nil {
			return err
		}
		c.Images, err = tx.NamedImages()
		return err
	})
	for digest := range blobs {
		if digest != "" {
			c.Blobs = append(c.Blobs, digest)
		}
	}
	slices.Sort(c.Blobs)
	return c, errors.Join(err, s.Close())
}

// unsealAll opens what is kept under settings, so that a key of another
// database is found out.
func (tx *Tx) unsealAll() error {
	rows, err := tx.sql.QueryContext(tx.ctx, "SELECT value FROM settings")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var sealed []byte
		if err := rows.Scan(&sealed); err != nil {
			return err
		}
		if _, err := tx.seal.unseal(sealed); err != nil {
			return err
		}
	}
	return rows.Err()
}

// checkFile checks a database's pages, references and schema, and returns the
// schema's number. Nothing that the schema says is run.
func checkFile(ctx context.Context, file string) (schema int, err error) {
	db, err := open(file, "_pragma=trusted_schema(0)&_pragma=query_only(1)")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&schema); err != nil {
		return 0, err
	}
	steps, err := migrationNames()
	if err != nil {
		return 0, err
	}
	if schema > len(steps) {
		return schema, newerError(schema, len(steps))
	}
	if schema < 1 {
		return schema, errors.New("it is none of cupola's")
	}
	if err := checkPages(ctx, db); err != nil {
		return schema, err
	}
	return schema, compareSchema(ctx, db, steps[:schema])
}

func checkPages(ctx context.Context, db *sql.DB) error {
	var said string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return errors.New(said)
	}
	rows, err := db.QueryContext(ctx, "PRAGMA foreign_key_check")
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		return errors.New("a row names another that is not there")
	}
	return rows.Err()
}

// compareSchema compares a database's tables, indexes and triggers with those
// that the migrations make.
func compareSchema(ctx context.Context, db *sql.DB, steps []string) error {
	scratch, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer scratch.Close()
	scratch.SetMaxOpenConns(1) // another connection would have another memory
	for _, name := range steps {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := scratch.ExecContext(ctx, string(text)); err != nil {
			return err
		}
	}
	want, err := schemaOf(ctx, scratch)
	if err != nil {
		return err
	}
	got, err := schemaOf(ctx, db)
	if err != nil {
		return err
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			return fmt.Errorf("it has a %s that no migration makes", strings.Join(strings.Fields(line)[:2], " "))
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("it has %d tables, indexes and triggers; the migrations make %d", len(got), len(want))
	}
	return nil
}

// schemaOf lists a database's objects, each as type, name and SQL.
func schemaOf(ctx context.Context, db *sql.DB) (lines []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, rows.Err()
}

// Replace replaces the database in dir, which must not be open, by that of a file that
// has no write-ahead log. It keeps the old one in the same directory, with the content of its log;
// aside is its name, "" if there was none.
func Replace(dir, from, suffix string) (aside string, err error) {
	file := filepath.Join(dir, DatabaseFile)
	aside = file + suffix
	// At each moment there is a database under its name.
	if err := os.Link(file, aside); errors.Is(err, fs.ErrNotExist) {
		aside = ""
	} else if err != nil {
		return "", err
	} else if err := os.Rename(file+"-wal", aside+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	// A log that stays would be taken for the new one's.
	if err := errors.Join(removeIfThere(file+"-wal"), removeIfThere(file+"-shm")); err != nil {
		return "", err
	}
	return aside, durable.Rename(from, file)
}

// ForgetRunning deletes the instances: they do not exist where a backup is restored,
// and their addresses may belong to others there.
func (tx *Tx) ForgetRunning() error {
	_, err := tx.exec("DELETE FROM actual_lrps")
	return err
}

// SchemaOf returns the schema of the database in dir: 0 if there is none.
func SchemaOf(ctx context.Context, dir string) (schema int, err error) {
	file := filepath.Join(dir, DatabaseFile)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	db, err := open(file, "_pragma=query_only(1)")
	if err != nil {
		return 0, err
	}
	return schema, errors.Join(db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&schema), db.Close())
}

// Revert brings back the database that was in dir before it was migrated beyond
// a schema, from the copy that was made then. What the migrated one has got
// since is kept as cupola.db.failed. One that was not migrated stays.
func Revert(ctx context.Context, dir string, schema int) error {
	now, err := SchemaOf(ctx, dir)
	if err != nil || now <= schema {
		return err
	}
	file := filepath.Join(dir, DatabaseFile)
	was := beforeMigration(file, schema+1)
	if _, err := os.Stat(was); err != nil {
		return fmt.Errorf("the database was migrated, and the copy from before is lost: %w", err)
	}
	if err := emptyLog(ctx, file); err != nil {
		return err
	}
	failed := file + ".failed"
	// At each moment there is a database under its name.
	if err := errors.Join(removeIfThere(failed), os.Link(file, failed)); err != nil {
		return err
	}
	return durable.Rename(was, file)
}

// emptyLog writes the write-ahead log of a database that is not open into the
// database, so that SQLite cannot apply the log to another one.
func emptyLog(ctx context.Context, file string) error {
	db, err := open(file, "")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return errors.Join(err, db.Close(), removeIfThere(file+"-wal"), removeIfThere(file+"-shm"))
}
