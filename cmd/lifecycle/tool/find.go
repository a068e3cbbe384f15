package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// find knows, after its starting points, -name, -iname, -path, -type,
// -maxdepth, -mindepth, -empty, -print, -print0 and -delete, all of which must
// hold.
func find(s streams, args []string) error {
	var starts []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		starts, args = append(starts, args[0]), args[1:]
	}
	if len(starts) == 0 {
		starts = []string{"."}
	}
	f, err := parseFind(args)
	if err != nil {
		return err
	}
	f.streams = s
	return each(s, "find", starts, f.walk)
}

// finder is one call of find.
type finder struct {
	streams
	tests              []func(path string, d fs.DirEntry) bool
	minDepth, maxDepth int
	end                string // what ends a printed path
	remove             bool
}

func parseFind(args []string) (*finder, error) {
	f := &finder{maxDepth: 1 << 20, end: "\n"}
	for len(args) > 0 {
		flag := args[0]
		args = args[1:]
		switch flag {
		case "-print":
			continue
		case "-print0":
			f.end = "\x00"
			continue
		case "-delete":
			f.remove = true
			continue
		case "-empty":
			f.tests = append(f.tests, isEmpty)
			continue
		}
		if len(args) == 0 {
			return nil, fmt.Errorf("unknown or incomplete predicate %s", flag)
		}
		if err := f.add(flag, args[0]); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	return f, nil
}

func (f *finder) add(flag, value string) error {
	var err error
	switch flag {
	case "-maxdepth":
		f.maxDepth, err = strconv.Atoi(value)
		return err
	case "-mindepth":
		f.minDepth, err = strconv.Atoi(value)
		return err
	case "-name", "-iname", "-path":
		if _, err := filepath.Match(value, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", value, err)
		}
	case "-type":
		if !strings.Contains("fdlps", value) || len(value) != 1 {
			return fmt.Errorf("unknown type %q", value)
		}
	default:
		return fmt.Errorf("unknown predicate %s", flag)
	}
	f.tests = append(f.tests, func(path string, d fs.DirEntry) bool {
		name := filepath.Base(path)
		switch flag {
		case "-name":
			ok, _ := filepath.Match(value, name)
			return ok
		case "-iname":
			ok, _ := filepath.Match(strings.ToLower(value), strings.ToLower(name))
			return ok
		case "-path":
			// An asterisk crosses directories here.
			ok, _ := filepath.Match(strings.ReplaceAll(value, "/", "\x01"), strings.ReplaceAll(path, "/", "\x01"))
			return ok
		}
		kind := map[fs.FileMode]string{0: "f", fs.ModeDir: "d", fs.ModeSymlink: "l", fs.ModeNamedPipe: "p", fs.ModeSocket: "s"}
		return kind[d.Type()] == value
	})
	return nil
}

func isEmpty(path string, d fs.DirEntry) bool {
	if d.IsDir() {
		entries, err := os.ReadDir(path)
		return err == nil && len(entries) == 0
	}
	info, err := d.Info()
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

func (f *finder) walk(start string) error {
	var doomed []string
	var failed error
	err := filepath.WalkDir(start, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			failed = errors.Join(failed, err)
			return nil
		}
		shown, depth := path, 0
		if rel, err := filepath.Rel(start, path); err == nil && rel != "." {
			depth = strings.Count(rel, "/") + 1
			shown = strings.TrimRight(start, "/") + "/" + rel
		}
		matches := depth >= f.minDepth && !slices.ContainsFunc(f.tests, func(t func(string, fs.DirEntry) bool) bool { return !t(shown, d) })
		if matches && f.remove {
			doomed = append(doomed, path)
		} else if matches {
			fmt.Fprint(f.out, shown+f.end)
		}
		if d.IsDir() && depth >= f.maxDepth {
			return fs.SkipDir
		}
		return nil
	})
	// Children come after their parents and must go first.
	for _, path := range slices.Backward(doomed) {
		failed = errors.Join(failed, os.Remove(path))
	}
	return errors.Join(err, failed)
}
