package pack

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

// Tree writes dir, which must not change meanwhile. Devices and sockets, of which
// neither a stack nor a volume needs any, are left out.
func Tree(ctx context.Context, dir string, o Options, w io.Writer) error {
	if o.Owner == nil {
		o.Owner = func(id uint32) uint32 { return id }
	}
	p := &packer{ctx: ctx, o: o, w: w, t: tar.NewWriter(w), dir: dir, linked: map[uint64]string{}}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if file == dir && !o.Root {
			return nil
		}
		return p.file(file)
	})
	if err != nil {
		return err
	}
	return p.t.Close()
}

type packer struct {
	ctx    context.Context
	o      Options
	w      io.Writer
	t      *tar.Writer // on w
	dir    string
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
	if h.Typeflag != tar.TypeReg {
		return p.t.WriteHeader(h)
	}
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if p.o.Holes && hasHoles(info) {
		return p.sparse(h, f)
	}
	if err := p.t.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(p.t, &reader{p.ctx, f}, h.Size)
	return err
}

// reader ends with its context.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(b)
}

// Header is what a tar says of a file, whose name in it is given; owner tells
// whose it is there.
func Header(file, name string, info fs.FileInfo, owner func(uint32) uint32) (*tar.Header, error) {
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
	if h.Name = name; info.IsDir() {
		h.Name += "/"
	}
	h.Uname, h.Gname = "", ""
	h.Uid, h.Gid = int(owner(uint32(h.Uid))), int(owner(uint32(h.Gid)))
	return h, nil
}

func (p *packer) header(file string, info fs.FileInfo) (*tar.Header, error) {
	name, err := filepath.Rel(p.dir, file)
	if err != nil {
		return nil, err
	}
	h, err := Header(file, name, info, p.o.Owner)
	if err != nil {
		return nil, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink > 1 {
		if first, ok := p.linked[st.Ino]; ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
			return h, nil
		}
		p.linked[st.Ino] = h.Name
	}
	if info.Mode().IsRegular() || info.IsDir() {
		h.PAXRecords, err = Attributes(file)
	}
	return h, err
}

// Attributes are the extended attributes that unpacking sets again, as a tar
// has them.
func Attributes(file string) (map[string]string, error) {
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
