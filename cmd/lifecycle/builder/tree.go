package builder

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"cupola/runtime/contract"
)

// tree writes directories to a tar file in the order of their names, so that
// equal directories make equal files.
type tree struct {
	tw    *tar.Writer
	links map[inode]string // where a file of several names was put
}

type inode struct{ device, number uint64 }

func newTree(tw *tar.Writer) *tree {
	return &tree{tw: tw, links: map[inode]string{}}
}

// add writes the directory at root under name. Sockets, pipes and devices are
// left out, as a droplet has no use for them.
func (t *tree) add(root, name string) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		entry := name
		if rel != "." {
			entry = name + "/" + filepath.ToSlash(rel)
		}
		return t.write(file, entry, info)
	})
}

func (t *tree) write(file, entry string, info fs.FileInfo) error {
	h := &tar.Header{
		// Tar would round the time up, into the future.
		Name: entry, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(time.Second),
		Uid: contract.VcapID, Gid: contract.VcapID, Uname: contract.VcapName, Gname: contract.VcapName,
	}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, entry+"/"
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(file)
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
	case info.Mode().IsRegular():
		return t.writeFile(file, h, info)
	default:
		return nil
	}
	return t.tw.WriteHeader(h)
}

func (t *tree) writeFile(file string, h *tar.Header, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		id := inode{st.Dev, st.Ino}
		if first, ok := t.links[id]; ok {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			return t.tw.WriteHeader(h)
		}
		t.links[id] = h.Name
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := t.tw.WriteHeader(h); err != nil {
		return err
	}
	return copyExactly(t.tw, file, info.Size())
}

// openRegular opens a file for reading and makes sure that it is one: a pipe
// put in its place would block for ever.
func openRegular(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", filepath.Base(file))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
