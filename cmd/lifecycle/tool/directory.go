package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// mkdir knows -p, -m and -v.
func mkdir(s streams, o options, names []string) error {
	return each(s, "mkdir", names, func(name string) error {
		made := os.Mkdir(name, 0o777)
		if o.has('p') {
			made = os.MkdirAll(name, 0o777)
		}
		if mode, ok := o['m']; ok && made == nil {
			return changeMode(name, mode)
		}
		return made
	})
}

func rmdir(s streams, o options, names []string) error {
	return each(s, "rmdir", names, func(name string) error {
		err := syscall.Rmdir(name)
		for o.has('p') && err == nil && filepath.Dir(name) != "." && filepath.Dir(name) != "/" {
			name = filepath.Dir(name)
			err = syscall.Rmdir(name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// rm knows -r, -R, -f and, for nothing, -v and -i.
func rm(s streams, o options, names []string) error {
	if len(names) == 0 && o.has('f') {
		return nil
	}
	return each(s, "rm", names, func(name string) error {
		if base := filepath.Base(name); base == "." || base == ".." || name == "/" {
			return fmt.Errorf("refusing to remove %s", name)
		}
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) && o.has('f') {
			return nil
		}
		if err != nil {
			return err
		}
		if info.IsDir() && !o.has('r') && !o.has('R') {
			return fmt.Errorf("%s is a directory", name)
		}
		return os.RemoveAll(name)
	})
}

// mv knows -f, -n and -v; between file systems it copies.
func mv(_ streams, o options, names []string) error {
	return eachTarget(names, o.has('T'), func(source, to string) error {
		if _, err := os.Lstat(to); err == nil && o.has('n') {
			return nil
		}
		err := os.Rename(source, to)
		if errors.Is(err, syscall.EXDEV) {
			err = copier{recursive: true, keep: true, links: true}.copy(source, to, false)
			if err == nil {
				err = os.RemoveAll(source)
			}
		}
		return err
	})
}

// eachTarget calls f with each name but the last and where it goes: into the
// last name if that is a directory, unless asFile, else in its place.
func eachTarget(names []string, asFile bool, f func(source, to string) error) error {
	if len(names) < 2 {
		return errors.New("missing operand")
	}
	sources, target := names[:len(names)-1], names[len(names)-1]
	info, err := os.Stat(target)
	into := err == nil && info.IsDir() && !asFile
	if len(sources) > 1 && !into {
		return fmt.Errorf("%s is not a directory", target)
	}
	for _, source := range sources {
		to := target
		if into {
			to = filepath.Join(target, filepath.Base(source))
		}
		if err := f(source, to); err != nil {
			return err
		}
	}
	return nil
}

// touch knows -c, -a, -m, -r and -d with RFC 3339 dates, whole or in part.
func touch(s streams, o options, names []string) error {
	at := time.Now()
	if reference, ok := o['r']; ok {
		info, err := os.Stat(reference)
		if err != nil {
			return err
		}
		at = info.ModTime()
	}
	if date, ok := o['d']; ok {
		var err error
		if at, err = parseDate(date); err != nil {
			return err
		}
	}
	return each(s, "touch", names, func(name string) error {
		flags := os.O_WRONLY | os.O_CREATE
		if o.has('c') {
			flags = os.O_WRONLY
		}
		f, err := os.OpenFile(name, flags, 0o666)
		switch {
		case errors.Is(err, fs.ErrNotExist) && o.has('c'):
			return nil
		case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ETXTBSY):
		case err != nil:
			return err
		default:
			f.Close()
		}
		return os.Chtimes(name, at, at)
	})
}

func parseDate(text string) (time.Time, error) {
	if seconds, ok := strings.CutPrefix(text, "@"); ok {
		n, err := strconv.ParseInt(seconds, 10, 64)
		return time.Unix(n, 0), err
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("invalid date %q", text)
}
