package preload

import (
	"archive/tar"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// isTree tells a root filesystem's directory from one that holds an image.
func isTree(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	for _, name := range []string{"oci-layout", "manifest.json"} {
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			return false
		}
	}
	return true
}

// packDir writes a directory's tree as a tar, with its owners and modes. What is
// mounted in it, and devices, pipes and sockets, are left out.
func packDir(ctx context.Context, dir string, w io.Writer) error {
	root, err := os.Stat(dir)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if device(info) != device(root) {
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if path == dir || info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
			return nil
		}
		return packFile(t, dir, path, info)
	})
	if err != nil {
		return err
	}
	return t.Close()
}

func device(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return st.Dev
}

func packFile(t *tar.Writer, dir, path string, info fs.FileInfo) error {
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	if h.Name, err = filepath.Rel(dir, path); err != nil {
		return err
	}
	if info.IsDir() {
		h.Name += "/"
	}
	h.Uname, h.Gname = "", ""
	if err := t.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(t, f, h.Size)
	return err
}
