package tool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// cp knows -r -R -a -p -f -P -L -v. -a keeps links, modes and times; owners
// are the user's own, who is not root here.
func cp(s streams, o options, names []string) error {
	c := copier{
		recursive: o.has('r') || o.has('R') || o.has('a'), keep: o.has('a') || o.has('p'),
		links: (o.has('a') || o.has('P') || o.has('d')) && !o.has('L'),
	}
	return eachTarget(names, false, func(source, to string) error {
		err := c.copy(source, to, !c.recursive && !c.links)
		if err == nil && o.has('v') {
			fmt.Fprintf(s.out, "'%s' -> '%s'\n", source, to)
		}
		return err
	})
}

type copier struct {
	recursive bool
	keep      bool // modes and times
	links     bool // copy symbolic links as such
}

// copy copies what is at from; follow reads through a symbolic link, as is
// done for operands, never below them.
func (c copier) copy(from, to string, follow bool) error {
	info, err := os.Lstat(from)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 && follow {
		info, err = os.Stat(from)
	}
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		err = c.copyDirectory(from, to, info)
	case info.Mode()&fs.ModeSymlink != 0:
		return copyLink(from, to)
	case info.Mode().IsRegular():
		err = copyRegular(from, to, info.Mode().Perm())
	default:
		return fmt.Errorf("%s is neither file, directory nor link", from)
	}
	if err == nil && c.keep {
		err = errors.Join(os.Chmod(to, info.Mode().Perm()), os.Chtimes(to, info.ModTime(), info.ModTime()))
	}
	return err
}

func (c copier) copyDirectory(from, to string, info fs.FileInfo) error {
	if !c.recursive {
		return fmt.Errorf("-r not specified; omitting directory '%s'", from)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, info.Mode().Perm()|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, e := range entries {
		if err := c.copy(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), false); err != nil {
			return err
		}
	}
	return nil
}

func copyLink(from, to string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return err
	}
	if info, err := os.Lstat(to); err == nil && !info.IsDir() {
		if err := os.Remove(to); err != nil {
			return err
		}
	}
	return os.Symlink(target, to)
}

func copyRegular(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if a, err := in.Stat(); err == nil {
		if b, err := os.Stat(to); err == nil && os.SameFile(a, b) {
			return fmt.Errorf("'%s' and '%s' are the same file", from, to)
		}
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// ln knows -s, -f and -n.
func ln(_ streams, o options, names []string) error {
	if len(names) != 2 {
		return errors.New("usage: ln [-sfn] target name")
	}
	target, name := names[0], names[1]
	if info, err := os.Stat(name); err == nil && info.IsDir() && !o.has('n') {
		name = filepath.Join(name, filepath.Base(target))
	}
	if o.has('f') {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if o.has('s') {
		return os.Symlink(target, name)
	}
	return os.Link(target, name)
}

func readlink(s streams, o options, names []string) error {
	for _, name := range names {
		target, err := os.Readlink(name)
		if o.has('f') || o.has('e') {
			if target, err = filepath.EvalSymlinks(name); err == nil {
				target, err = filepath.Abs(target)
			}
		}
		if err != nil {
			return status(1)
		}
		fmt.Fprintln(s.out, target)
	}
	return nil
}

// mktemp knows -d, -p, -t, -u and templates of at least three X, with or
// without a directory.
func mktemp(s streams, o options, names []string) error {
	template := "tmp.XXXXXXXXXX"
	dir := os.TempDir()
	if len(names) > 0 {
		template = names[0]
		if !o.has('p') && !o.has('t') {
			dir = "."
		}
	}
	if p, ok := o['p']; ok {
		dir = p
	}
	if d, base := filepath.Split(template); d != "" {
		if filepath.IsAbs(d) {
			dir = d
		} else {
			dir = filepath.Join(dir, d)
		}
		template = base
	}
	end := strings.LastIndex(template, "X") + 1
	start := len(strings.TrimRight(template[:end], "X"))
	if end-start < 3 {
		return fmt.Errorf("too few X's in template '%s'", template)
	}
	name, err := createTemp(dir, template[:start]+"*"+template[end:], o.has('d'))
	if err != nil {
		return err
	}
	if o.has('u') {
		err = os.Remove(name)
	}
	fmt.Fprintln(s.out, name)
	return err
}

func createTemp(dir, pattern string, directory bool) (string, error) {
	if directory {
		return os.MkdirTemp(dir, pattern)
	}
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}
