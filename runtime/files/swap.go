package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"cupola/runtime/lrp"
)

// data is the link to the files that count; the name is Kubernetes', for
// programs that watch for its change.
const data = "..data"

// swap writes files into a new directory and lets the link data lead to it. A
// crash leaves the old files or the new; what else it leaves the next swap
// clears away.
func (s *Store) swap(root *os.Root, gid uint32, files []lrp.File) error {
	next := ".." + time.Now().UTC().Format("2006_01_02_15_04_05.000000000")
	if err := s.write(root, next, int(gid), files); err != nil {
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
	names := map[string]bool{data: true, next: true}
	for _, f := range files {
		name, _, _ := strings.Cut(f.Path, "/")
		names[name] = true
		if err := root.Symlink(path.Join(data, name), name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return clear(root, names)
}

// clear removes what is not among names.
func clear(root *os.Root, names map[string]bool) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !names[e.Name()] {
			err = errors.Join(err, root.RemoveAll(e.Name()))
		}
	}
	return err
}

func (s *Store) write(root *os.Root, dir string, gid int, files []lrp.File) error {
	if err := s.makeDir(root, dir); err != nil {
		return err
	}
	for _, f := range files {
		name := path.Join(dir, f.Path)
		if err := s.makeDirs(root, path.Dir(name)); err != nil {
			return err
		}
		if err := s.writeFile(root, name, gid, f.Content); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) makeDirs(root *os.Root, dir string) error {
	if _, err := root.Lstat(dir); err == nil {
		return nil
	}
	if err := s.makeDirs(root, path.Dir(dir)); err != nil {
		return err
	}
	return s.makeDir(root, dir)
}

func (s *Store) makeDir(root *os.Root, dir string) error {
	if err := root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	// Whatever the umask.
	return errors.Join(root.Chmod(dir, 0o755), s.chown(root, dir, 0))
}

func (s *Store) writeFile(root *os.Root, name string, gid int, content []byte) error {
	if err := root.WriteFile(name, content, 0o400); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return errors.Join(s.chown(root, name, gid), root.Chmod(name, 0o440))
}
