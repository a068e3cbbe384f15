package tool

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// tarTool knows c, x, t with z, v, f and C, dash or none before the letters.
// A gzipped archive is recognized when it is read. Nothing is written outside
// the directory, whatever the archive says.
func tarTool(s streams, args []string) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = append([]string{"-" + args[0]}, args[1:]...)
	}
	o, names, err := parse("cxtzvpof:C:", args)
	if err != nil {
		return err
	}
	for len(names) > 1 && names[0] == "-C" {
		o['C'], names = names[1], names[2:]
	}
	dir := o['C']
	if dir == "" {
		dir = "."
	}
	switch {
	case o.has('c'):
		return createTar(s, o, dir, names)
	case o.has('x'), o.has('t'):
		return readTar(s, o, dir)
	}
	return errors.New("one of c, x and t is needed")
}

func createTar(s streams, o options, dir string, names []string) (err error) {
	out := s.out
	if name := o['f']; name != "" && name != "-" {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}
	if o.has('z') {
		z := gzip.NewWriter(out)
		defer func() { err = errors.Join(err, z.Close()) }()
		out = z
	}
	w := tar.NewWriter(out)
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			if o.has('v') {
				fmt.Fprintln(s.err, rel)
			}
			return addTar(w, path, rel)
		})
		if err != nil {
			return err
		}
	}
	return w.Close()
}

func addTar(w *tar.Writer, path, name string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name = name
	if info.IsDir() {
		h.Name += "/"
	}
	if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(w, f, info.Size())
	return err
}

func readTar(s streams, o options, dir string) error {
	in := s.in
	if name := o['f']; name != "" && name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	b := bufio.NewReader(in)
	in = b
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			return err
		}
		in = z
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if o.has('t') || o.has('v') {
			fmt.Fprintln(s.out, h.Name)
		}
		if o.has('x') {
			if err := extract(root, h, r); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
	}
}

func extract(root *os.Root, h *tar.Header, body io.Reader) error {
	name := filepath.Clean(strings.TrimLeft(h.Name, "/"))
	mode := fs.FileMode(h.Mode).Perm()
	if h.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, mode|0o700)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeXGlobalHeader {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, body)
		return errors.Join(err, f.Close(), root.Chtimes(name, h.ModTime, h.ModTime))
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		return root.Link(filepath.Clean(h.Linkname), name)
	}
	return nil // devices and the like are left out
}
