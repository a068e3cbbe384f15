package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"cupola/runtime/lrp"
)

// data is the link to the files that count; the name is Kubernetes', for
// programs that watch for its change.
const data = "..data"

// swap writes files into a new directory and lets the link data lead to it,
// unless they are what it leads to. A crash leaves the old files or the new;
// what else it leaves the next swap clears away.
func (w writer) swap(root *os.Root, files []lrp.File) error {
	if leadsTo(root, files) {
		return nil
	}
	next := ".." + time.Now().UTC().Format("2006_01_02_15_04_05.000000000")
	if err := w.write(root, next, files); err != nil {
		return errors.Join(err, root.RemoveAll(next))
	}
	if err := root.Remove(data + "_tmp"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := root.Symlink(next, data+"_tmp"); err != nil {
		return err
	}
	if err := root.Rename(data+"_tmp", data); err != nil {
		return err
	}
	for name := range parts(files) {
		if err := root.Symlink(path.Join(data, name), name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// leadsTo reports whether the link data leads to just these files.
func leadsTo(root *os.Root, files []lrp.File) bool {
	to, err := root.Readlink(data)
	if err != nil {
		return false
	}
	n := 0
	err = fs.WalkDir(root.FS(), to, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil || n != len(files) {
		return false
	}
	for name := range parts(files) {
		if _, err := root.Lstat(name); err != nil {
			return false
		}
	}
	return !slices.ContainsFunc(files, func(f lrp.File) bool { return !is(root, path.Join(to, f.Path), f) })
}

// is reports whether a file is f.
func is(root *os.Root, name string, f lrp.File) bool {
	if f.Link != "" {
		to, err := root.Readlink(name)
		return err == nil && to == f.Link
	}
	content, err := root.ReadFile(name)
	return err == nil && bytes.Equal(content, f.Content)
}

// clear removes what swap left of other files, but for dirs.
func clear(root *os.Root, files []lrp.File, dirs map[string][]lrp.File) error {
	want := parts(files)
	if to, err := root.Readlink(data); err == nil && len(files) > 0 {
		want[data], want[to] = true, true
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if dirs[e.Name()] == nil && !want[e.Name()] {
			err = errors.Join(err, root.RemoveAll(e.Name()))
		}
	}
	return err
}

func (w writer) write(root *os.Root, dir string, files []lrp.File) error {
	if err := w.makeDir(root, dir); err != nil {
		return err
	}
	for _, f := range files {
		name := path.Join(dir, f.Path)
		if err := w.makeDirs(root, path.Dir(name)); err != nil {
			return err
		}
		if err := w.writeFile(root, name, f); err != nil {
			return err
		}
	}
	return nil
}

func (w writer) makeDirs(root *os.Root, dir string) error {
	if _, err := root.Lstat(dir); err == nil {
		return nil
	}
	if err := w.makeDirs(root, path.Dir(dir)); err != nil {
		return err
	}
	return w.makeDir(root, dir)
}

func (w writer) makeDir(root *os.Root, dir string) error {
	if err := root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	// Whatever the umask.
	return errors.Join(root.Chmod(dir, 0o755), w.own(root, dir, 0))
}

func (w writer) writeFile(root *os.Root, name string, f lrp.File) error {
	if f.Link != "" {
		return errors.Join(root.Symlink(f.Link, name), w.own(root, name, 0))
	}
	mode := fs.FileMode(0o440)
	if f.Program {
		mode = 0o550
	}
	if err := root.WriteFile(name, f.Content, 0o400); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return errors.Join(w.own(root, name, w.gid), root.Chmod(name, mode))
}
