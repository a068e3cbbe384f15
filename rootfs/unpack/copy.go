package unpack

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Copy is Into for the files in the directory from instead of an archive. They must not change meanwhile.
func Copy(ctx context.Context, dir *os.File, from string, o Options) (Stats, error) {
	o.Limits.Ratio = -1 // nothing is packed
	t := newTarget(dir, o)
	defer t.forget()
	w := newWalk(t, o)
	err := filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == from {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		return w.treeEntry(ctx, file, filepath.ToSlash(name), d)
	})
	if err == nil {
		err = t.finish()
	}
	return w.stats, err
}

func (w *walk) treeEntry(ctx context.Context, file, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err := errors.Join(err, w.count(ctx)); err != nil {
		return err
	}
	e := entry{name: name, mode: info.Mode() &^ fs.ModeType, mtime: info.ModTime(), size: info.Size()}
	switch kind := info.Mode().Type(); kind {
	case fs.ModeSymlink:
		target, err := os.Readlink(file)
		if err != nil {
			return err
		}
		return w.add(e, kind, target, nil)
	case 0:
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		return w.add(e, 0, "", f)
	default:
		return w.add(e, kind, "", nil)
	}
}
