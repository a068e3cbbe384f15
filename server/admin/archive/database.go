package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"cupola/rootfs/disk"
	"cupola/runtime/durable"
)

// DatabaseCopy is a compressed copy of the database alone, which a daemon makes
// by itself.
type DatabaseCopy struct {
	File  string
	Made  time.Time
	Bytes int64 // compressed
}

// How many copies are kept: keptCopies at most, and of those older than
// copyAge none but the newest keptAnyway.
const (
	keptCopies = 7
	keptAnyway = 2
	copyAge    = 14 * 24 * time.Hour
)

// copyReserve is the room that making a copy leaves on the disk, in bytes.
const copyReserve = 64 << 20

const (
	copyPrefix = "cupola-"
	copySuffix = ".db.zst"
	copyStamp  = "20060102T150405Z"
	halfSuffix = ".new"
)

// ErrNoRoom says that a copy would have filled the disk.
var ErrNoRoom = errors.New("no room for a copy of the database")

// CopyDatabase makes a copy in dir, which is made where there is none. write
// writes the database, of about size bytes, to a file. Old copies go only once
// the new one is on the disk; a daemon that is killed leaves no half of one.
func CopyDatabase(ctx context.Context, dir string, size int64, now time.Time, write func(ctx context.Context, file string) error) (c DatabaseCopy, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return c, err
	}
	half, err := filepath.Glob(filepath.Join(dir, "*"+halfSuffix))
	for _, name := range half {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return c, err
	}
	if err := disk.CheckRoom(dir, "a copy of the database", 2*size+copyReserve); err != nil {
		return c, fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	plain := filepath.Join(dir, "plain"+halfSuffix)
	defer func() { err = errors.Join(err, removeIfThere(plain)) }()
	if err := write(ctx, plain); err != nil {
		return c, err
	}
	to := filepath.Join(dir, copyPrefix+now.UTC().Format(copyStamp)+copySuffix)
	if err := compressFile(plain, to+halfSuffix); err != nil {
		return c, errors.Join(err, removeIfThere(to+halfSuffix))
	}
	if err := durable.Rename(to+halfSuffix, to); err != nil {
		return c, err
	}
	info, err := os.Stat(to)
	if err := errors.Join(err, antedate(dir, now)); err != nil {
		return c, err
	}
	return DatabaseCopy{File: to, Made: now.UTC().Truncate(time.Second), Bytes: info.Size()}, dropCopies(dir, now)
}

// antedate renames the copies that a clock which was ahead has dated: they are
// older than the one made now, which is the last.
func antedate(dir string, now time.Time) error {
	all, err := DatabaseCopies(dir)
	before := now
	for _, c := range all {
		if c.Made.After(now) {
			before = before.Add(-time.Second)
			err = errors.Join(err, os.Rename(c.File, filepath.Join(dir, copyPrefix+before.UTC().Format(copyStamp)+copySuffix)))
		}
	}
	return err
}

func removeIfThere(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func compressFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	z, err := Compress(out)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	_, err = io.Copy(z, in)
	return errors.Join(err, z.Close(), out.Close())
}

// dropCopies removes the copies that are not kept any longer.
func dropCopies(dir string, now time.Time) error {
	all, err := DatabaseCopies(dir)
	for n, c := range all {
		if n >= keptCopies || n >= keptAnyway && now.Sub(c.Made) > copyAge {
			err = errors.Join(err, os.Remove(c.File))
		}
	}
	return err
}

// DatabaseCopies lists the copies in dir, the newest first. A directory that is
// not there has none.
func DatabaseCopies(dir string) (all []DatabaseCopy, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		stamp, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), copySuffix), copyPrefix)
		made, terr := time.Parse(copyStamp, stamp)
		info, ierr := e.Info()
		if ok && terr == nil && ierr == nil && strings.HasSuffix(e.Name(), copySuffix) {
			all = append(all, DatabaseCopy{File: filepath.Join(dir, e.Name()), Made: made, Bytes: info.Size()})
		}
	}
	slices.SortFunc(all, func(a, b DatabaseCopy) int { return b.Made.Compare(a.Made) })
	return all, err
}

// UnpackDatabase writes the database of a copy to a file, which must not be
// there. It also takes a database that is not compressed, such as the one from
// before a migration.
func UnpackDatabase(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Sync(), out.Close()) }()
	const plain = "SQLite format 3\x00"
	head := make([]byte, len(plain))
	if _, err := io.ReadFull(in, head); err != nil {
		return fmt.Errorf("%s is not a copy of a database: %w", from, err)
	}
	whole := io.MultiReader(bytes.NewReader(head), in)
	if string(head) == plain {
		_, err = io.Copy(out, whole)
		return err
	}
	z, err := zstd.NewReader(whole, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	if _, err := io.Copy(out, z); err != nil {
		return fmt.Errorf("%s is damaged, or not a copy of a database: %w", from, err)
	}
	return nil
}
