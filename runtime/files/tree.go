package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"cupola/runtime/lrp"
)

// A new directory is prepared in next, an old one is removed in last: programs
// never see a partial one.
const (
	next = own + "/next"
	last = own + "/last"
)

// fill gives a tree its files: each directory at its top as a whole, as in
// Kubernetes, where each binding is a volume; and the files at its top together.
func (w writer) fill(memory *os.Root, tree string, files []lrp.File) error {
	flat, dirs := sorted(files)
	root, err := memory.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := drop(memory, root, tree, dirs); err != nil {
		return err
	}
	for name, inside := range dirs {
		if err := w.fillDir(memory, path.Join(tree, name), inside); err != nil {
			return err
		}
	}
	if len(flat) > 0 {
		if err := w.swap(root, flat); err != nil {
			return err
		}
	}
	return clear(root, flat, dirs)
}

// sorted are the files at the top of a tree, and those in the directories there
// by directory.
func sorted(files []lrp.File) (flat []lrp.File, dirs map[string][]lrp.File) {
	dirs = map[string][]lrp.File{}
	for _, f := range files {
		if dir, rest, ok := strings.Cut(f.Path, "/"); ok {
			f.Path = rest
			dirs[dir] = append(dirs[dir], f)
		} else {
			flat = append(flat, f)
		}
	}
	return flat, dirs
}

// drop removes directories that are not wanted, each at once, and links that
// stand where one is wanted.
func drop(memory, root *os.Root, tree string, dirs map[string][]lrp.File) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		_, wanted := dirs[e.Name()]
		switch {
		case e.IsDir() == wanted || strings.HasPrefix(e.Name(), ".."):
		case wanted:
			err = errors.Join(err, root.Remove(e.Name()))
		case e.IsDir():
			err = errors.Join(err, memory.RemoveAll(last), memory.Rename(path.Join(tree, e.Name()), last), memory.RemoveAll(last))
		}
	}
	return err
}

// fillDir gives a directory at the top of a tree its files.
func (w writer) fillDir(memory *os.Root, dir string, files []lrp.File) error {
	at := dir
	if _, err := memory.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		at = next
		if err := errors.Join(memory.RemoveAll(next), w.makeDir(memory, next)); err != nil {
			return err
		}
	}
	root, err := memory.OpenRoot(at)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := errors.Join(w.swap(root, files), clear(root, files, nil)); err != nil || at == dir {
		return err
	}
	return memory.Rename(next, dir)
}

// parts are the first parts of the files' paths.
func parts(files []lrp.File) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		name, _, _ := strings.Cut(f.Path, "/")
		names[name] = true
	}
	return names
}
