package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"cupola/server/backup"
	"cupola/store"
	"cupola/store/blob"
)

// DatabaseBackups is where, in a data directory, the daemon keeps copies of its
// database.
const DatabaseBackups = "db/backups"

// When a copy is made: daily, and an hour after the first one, which holds
// little more than what every cupola begins with.
const (
	databaseInterval = 24 * time.Hour
	secondCopy       = time.Hour
	databaseLook     = 10 * time.Minute // how often the daemon looks whether it is time
)

// keepDatabase checks the whole database daily and then makes a copy of it,
// until ctx ends. Of a damaged database there is no copy: those from before stay.
func (d *daemon) keepDatabase(ctx context.Context) error {
	t := time.NewTicker(databaseLook)
	defer t.Stop()
	for {
		if d.copyDue(time.Now()) {
			if err := d.copyDatabase(ctx); err != nil && ctx.Err() == nil {
				d.Log.ErrorContext(ctx, "the daily backup of the database was not made", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// copyDue reports whether it is time for a copy. One that is from the future, by
// a clock that was wrong, does not put it off.
func (d *daemon) copyDue(now time.Time) bool {
	all, err := backup.DatabaseCopies(d.path(DatabaseBackups))
	if err != nil || len(all) == 0 {
		return true
	}
	interval := databaseInterval
	if len(all) == 1 {
		interval = secondCopy
	}
	age := now.Sub(all[0].Made)
	return age >= interval || age < -databaseLook
}

func (d *daemon) copyDatabase(ctx context.Context) error {
	if err := d.checkDatabase(ctx); err != nil {
		return err
	}
	size, err := d.store.Size()
	if err != nil {
		return err
	}
	made, err := backup.CopyDatabase(ctx, d.path(DatabaseBackups), size, time.Now(), d.store.Copy)
	if errors.Is(err, backup.ErrNoRoom) {
		d.Log.WarnContext(ctx, "the daily backup of the database was skipped", "err", err)
		return nil
	}
	if err == nil {
		d.Log.InfoContext(ctx, "the database was backed up", "file", made.File, "bytes", made.Bytes)
	}
	return err
}

// checkDatabase reads all of the database. The error names the way back.
func (d *daemon) checkDatabase(ctx context.Context) error {
	return wayBack(d.DataDir, d.store.Check(ctx, store.Full))
}

// wayBack adds to an error that says the database is damaged how to restore the
// last copy.
func wayBack(dataDir string, err error) error {
	if !errors.Is(err, store.ErrCorrupt) {
		return err
	}
	all, _ := backup.DatabaseCopies(filepath.Join(dataDir, DatabaseBackups))
	if len(all) == 0 {
		return fmt.Errorf("%w: there is no automatic backup yet; restore one that 'cupola backup' made into an empty --data-dir", err)
	}
	return fmt.Errorf("%w: the last automatic backup is of %s; stop the daemon, then put it back with 'sudo cupola restore --data-dir %s --database %s'",
		err, all[0].Made.Format(time.RFC3339), dataDir, all[0].File)
}

// CheckDatabase reads all of a data directory's database, through its daemon if
// that runs.
func CheckDatabase(ctx context.Context, c Config) error {
	if err := c.normalizeForRoot(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, "db", store.DatabaseFile)); err != nil {
		return fmt.Errorf("there is no database to check: %w", err)
	}
	d := &daemon{Config: c}
	err := d.openDir(ctx)
	if errors.Is(err, errInUse) {
		res, err := newControl(c.DataDir).send(ctx, http.MethodPost, "/database/check", nil)
		if err != nil {
			return err
		}
		return res.Body.Close()
	}
	defer d.close()
	if err == nil {
		err = d.openStore(ctx)
	}
	if err != nil {
		return err
	}
	return d.checkDatabase(ctx)
}

// RestoredDatabase is what RestoreDatabase did.
type RestoredDatabase struct {
	From  string
	Made  time.Time // when the copy was made
	Aside string    // the database that was there before; "" where there was none
	Lost  int       // blobs that rows name and that are gone
}

// LatestDatabase stands for the last copy in the data directory.
const LatestDatabase = "latest"

// RestoreDatabase puts a copy of the database in the place of the one that a
// stopped daemon left, which is kept beside. The copy is checked first: to the
// last page, and that the data directory's key opens what it holds.
func RestoreDatabase(ctx context.Context, c Config, file string) (r RestoredDatabase, err error) {
	if err := c.normalizeForRoot(); err != nil {
		return r, err
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, "db", store.KeyFile)); err != nil {
		return r, fmt.Errorf("%s is not a data directory with the key that its backups need: %w", c.DataDir, err)
	}
	d := &daemon{Config: c}
	if err := d.openDir(ctx); err != nil {
		return r, err
	}
	defer d.close()
	if r.From, r.Made, err = d.databaseCopy(file); err != nil {
		return r, err
	}
	stage, err := os.MkdirTemp(d.DataDir, backupPrefix)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	from := filepath.Join(stage, store.DatabaseFile)
	if err := errors.Join(backup.UnpackDatabase(r.From, from), os.Link(d.path("db", store.KeyFile), filepath.Join(stage, store.KeyFile))); err != nil {
		return r, err
	}
	contents, err := store.Inspect(ctx, stage)
	if err != nil {
		return r, fmt.Errorf("%s: %w", r.From, err)
	}
	if r.Lost, err = d.lostBlobs(contents.Blobs); err != nil {
		return r, err
	}
	r.Aside, err = store.Replace(d.path("db"), from, time.Now().UTC().Format(".replaced-20060102T150405Z"))
	return r, err
}

// databaseCopy finds a copy by its file, or the last one.
func (d *daemon) databaseCopy(file string) (name string, made time.Time, err error) {
	if file == LatestDatabase {
		all, err := backup.DatabaseCopies(d.path(DatabaseBackups))
		if err != nil || len(all) == 0 {
			return "", made, errors.Join(fmt.Errorf("there is no automatic backup in %s", d.path(DatabaseBackups)), err)
		}
		return all[0].File, all[0].Made, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", made, err
	}
	return file, info.ModTime(), nil
}

func (d *daemon) lostBlobs(digests []string) (lost int, err error) {
	blobs, err := blob.Open(d.path("blobs"))
	if err != nil {
		return 0, err
	}
	for _, digest := range digests {
		if !blobs.Has(digest) {
			lost++
		}
	}
	return lost, nil
}
