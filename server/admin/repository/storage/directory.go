package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"cupola/runtime/durable"
)

// directory keeps objects as files of root's.
type directory struct{ root string }

// openDirectory does not make the directory: where a disk should be mounted that is
// not, backups would fill the machine's own.
func openDirectory(root string) (Storage, error) {
	info, err := os.Stat(root)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a directory")
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no directory %s: mount the disk, or make the directory", root)
	}
	return directory{root}, err
}

func (d directory) file(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

func (d directory) Put(_ context.Context, name string, content []byte) error {
	to := d.file(name)
	if err := durable.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	half := to + halfSuffix
	if err := os.WriteFile(half, content, 0o600); err != nil {
		return errors.Join(err, os.Remove(half))
	}
	if err := durable.Sync(half); err != nil {
		return err
	}
	return durable.Rename(half, to)
}

func (d directory) Get(_ context.Context, name string, limit int64) ([]byte, error) {
	f, err := os.Open(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f, limit)
}

func (d directory) List(ctx context.Context, folder string, f func(Object) error) error {
	return filepath.WalkDir(d.file(folder), func(file string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(d.root, file)
		if err != nil {
			return err
		}
		return f(Object{path.Clean(filepath.ToSlash(name)), info.Size(), info.ModTime()})
	})
}

func (d directory) Remove(_ context.Context, name string) error {
	if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for folder := path.Dir(name); folder != "." && os.Remove(d.file(folder)) == nil; folder = path.Dir(folder) {
	}
	return nil
}

func (d directory) Close() error { return nil }
