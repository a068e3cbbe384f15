package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"cupola/rootfs/layer"
	"cupola/server/admin/archive"
	"cupola/server/datadir"
	"cupola/store"
	"cupola/store/blob"
)

// Restored is what Restore did.
type Restored struct {
	From  string
	Made  time.Time // when the copy was made
	Aside string    // the database that was there before; "" where there was none
	Lost  int       // blobs that rows name and that are gone
}

// latest stands for the last copy in the data directory.
const latest = "latest"

// Restore puts a copy of the database in the place of the one that a
// stopped daemon left, which is kept next to it. The copy is checked first: to the
// last page, and that the data directory's key opens what it holds.
func Restore(ctx context.Context, dataDir, file string, log *slog.Logger) (r Restored, err error) {
	if _, err := os.Stat(filepath.Join(dataDir, "db", store.KeyFile)); err != nil {
		return r, fmt.Errorf("%s is not a data directory with the key that its backups need: %w", dataDir, err)
	}
	d, err := datadir.Open(dataDir, log)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if r.From, r.Made, err = find(d, file); err != nil {
		return r, err
	}
	stage, err := os.MkdirTemp(d.Path(), datadir.ScratchPrefix)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	from := filepath.Join(stage, store.DatabaseFile)
	if err := errors.Join(archive.UnpackDatabase(r.From, from), os.Link(d.Path("db", store.KeyFile), filepath.Join(stage, store.KeyFile))); err != nil {
		return r, err
	}
	contents, err := store.Inspect(ctx, stage)
	if err != nil {
		return r, fmt.Errorf("%s: %w", r.From, err)
	}
	if r.Lost, err = lostBlobs(d, contents.Blobs); err != nil {
		return r, err
	}
	r.Aside, err = store.Replace(d.Path("db"), from, time.Now().UTC().Format(".replaced-20060102T150405Z"))
	return r, err
}

// find finds a copy by its file, or the last one.
func find(d *datadir.Dir, file string) (name string, made time.Time, err error) {
	if file == latest {
		all, err := archive.DatabaseCopies(d.Path(datadir.DatabaseCopies))
		if err != nil || len(all) == 0 {
			return "", made, errors.Join(fmt.Errorf("there is no automatic backup in %s", d.Path(datadir.DatabaseCopies)), err)
		}
		return all[0].File, all[0].Made, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", made, err
	}
	return file, info.ModTime(), nil
}

func lostBlobs(d *datadir.Dir, digests []string) (lost int, err error) {
	blobs, err := blob.Open(d.Path("blobs"))
	if err != nil {
		return 0, err
	}
	for _, digest := range digests {
		if _, kept := layer.Kept(d.Path("rootfs", layer.Dir), digest); !kept && !blobs.Has(digest) {
			lost++
		}
	}
	return lost, nil
}
