package rootfs

import (
	"archive/tar"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// packTree writes a stack's tree as a tar. Devices and sockets, of which a
// stack has none, are left out.
func packTree(ctx context.Context, dir string, ids IDMap, w io.Writer) error {
	p := &packer{t: tar.NewWriter(w), dir: dir, ids: ids, linked: map[uint64]string{}}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil || file == dir {
			return errors.Join(err, ctx.Err())
		}
		return p.file(file)
	})
	if err != nil {
		return err
	}
	return p.t.Close()
}

type packer struct {
	t      *tar.Writer
	dir    string
	ids    IDMap
	linked map[uint64]string // first name of files with several, by inode
}

func (p *packer) file(file string) error {
	info, err := os.Lstat(file)
	if err != nil || info.Mode()&(fs.ModeDevice|fs.ModeSocket) != 0 {
		return err
	}
	h, err := p.header(file, info)
	if err != nil {
		return err
	}
	if err := p.t.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(p.t, f, h.Size)
	return err
}

func (p *packer) header(file string, info fs.FileInfo) (*tar.Header, error) {
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if target, err = os.Readlink(file); err != nil {
			return nil, err
		}
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return nil, err
	}
	if h.Name, err = filepath.Rel(p.dir, file); err != nil {
		return nil, err
	}
	if info.IsDir() {
		h.Name += "/"
	}
	h.Uname, h.Gname = "", ""
	h.Uid, h.Gid = int(p.ids.ownerInside(uint32(h.Uid))), int(p.ids.ownerInside(uint32(h.Gid)))
	if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink > 1 {
		if first, ok := p.linked[st.Ino]; ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
			return h, nil
		}
		p.linked[st.Ino] = h.Name
	}
	if info.Mode().IsRegular() || info.IsDir() {
		h.PAXRecords, err = attributes(file)
	}
	return h, err
}

// attributes are the extended attributes that unpacking sets again, as a tar
// has them.
func attributes(file string) (map[string]string, error) {
	list := make([]byte, 64<<10) // the kernel's limit
	size, err := unix.Llistxattr(file, list)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	records := map[string]string{}
	for name := range strings.SplitSeq(string(list[:size]), "\x00") {
		if name != "security.capability" && !strings.HasPrefix(name, "user.") {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(file, name, value)
		if err != nil {
			return nil, err
		}
		records["SCHILY.xattr."+name] = string(unbound(name, value[:n]))
	}
	return records, nil
}

// unbound is an attribute as archives have it: a capability (struct
// vfs_ns_cap_data, its third revision) without the root that it is bound to,
// since unpacking binds it anew.
func unbound(name string, value []byte) []byte {
	const revision, second, third = 0xff000000, 0x02000000, 0x03000000
	if name != "security.capability" || len(value) != 24 {
		return value
	}
	if magic := binary.LittleEndian.Uint32(value); magic&revision == third {
		binary.LittleEndian.PutUint32(value, magic&^uint32(revision)|second)
		return value[:20]
	}
	return value
}
