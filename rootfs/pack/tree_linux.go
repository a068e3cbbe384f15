package pack

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Trees writes trees, which must not change meanwhile, as one tar. Devices and sockets are left out: neither a stack nor a volume
// needs any. Where files lie in several trees, those of the last tree count.
func Trees(ctx context.Context, trees []Subtree, o Options, w io.Writer) error {
	p := newPacker(ctx, trees, o)
	p.w, p.t = w, tar.NewWriter(w)
	if err := p.walk(trees); err != nil {
		return err
	}
	return p.t.Close()
}

// Fingerprint returns a text that changes when Trees would write something else, by what directories tell about their files, and
// how many bytes these have.
func Fingerprint(ctx context.Context, trees []Subtree, o Options) (sum string, bytes int64, err error) {
	p := newPacker(ctx, trees, o)
	p.sum = sha256.New()
	if err := p.walk(trees); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(p.sum.Sum(nil)), p.bytes, nil
}

func newPacker(ctx context.Context, trees []Subtree, o Options) *packer {
	if o.Owner == nil {
		o.Owner = func(id uint32) uint32 { return id }
	}
	p := &packer{ctx: ctx, o: o, linked: map[inode]string{}, covered: map[string]bool{}}
	for _, tree := range trees {
		p.covered[tree.At] = true
	}
	return p
}

type packer struct {
	ctx     context.Context
	o       Options
	w       io.Writer
	t       *tar.Writer      // on w
	sum     hash.Hash        // instead of those: takes what the headers say
	bytes   int64            // of the files that sum has seen
	linked  map[inode]string // first name of files with several
	covered map[string]bool  // where a tree lies
}

type inode struct{ dev, ino uint64 }

func (p *packer) walk(trees []Subtree) error {
	for _, tree := range trees {
		if err := filepath.WalkDir(tree.Dir, func(file string, e fs.DirEntry, err error) error {
			if err != nil || p.ctx.Err() != nil {
				return errors.Join(err, context.Cause(p.ctx))
			}
			return p.visit(tree, file, e)
		}); err != nil {
			return err
		}
	}
	return nil
}

// visit packs a file of a tree, unless another tree lies in its place.
func (p *packer) visit(tree Subtree, file string, e fs.DirEntry) error {
	name, err := filepath.Rel(tree.Dir, file)
	if err != nil {
		return err
	}
	name = path.Join(tree.At, name)
	switch {
	case name == "." && !p.o.Root:
		return nil
	case file != tree.Dir && p.covered[name] && e.IsDir():
		return fs.SkipDir
	case file != tree.Dir && p.covered[name]:
		return nil
	}
	return p.file(tree, file, name)
}

func (p *packer) file(tree Subtree, file, name string) error {
	info, err := os.Lstat(file)
	if err != nil || info.Mode()&(fs.ModeDevice|fs.ModeSocket) != 0 {
		return err
	}
	if tree.Foreign && info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0 {
		return nil
	}
	h, err := p.header(tree, file, name, info)
	if err != nil {
		return err
	}
	if err := p.write(h, file, info); err != nil {
		return fmt.Errorf("pack %s: %w", h.Name, err)
	}
	if tree.Foreign && info.IsDir() && info.Mode().Perm()&0o001 == 0 {
		return fs.SkipDir
	}
	return nil
}

func (p *packer) write(h *tar.Header, file string, info fs.FileInfo) error {
	if p.sum != nil {
		p.note(h)
		return nil
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

// note adds a header to the fingerprint.
func (p *packer) note(h *tar.Header) {
	p.bytes += h.Size
	fmt.Fprintf(p.sum, "%q %q %d %o %d %d %d %d", h.Name, h.Linkname, h.Typeflag, h.Mode, h.Uid, h.Gid, h.Size, h.ModTime.UnixNano())
	for _, name := range slices.Sorted(maps.Keys(h.PAXRecords)) {
		fmt.Fprintf(p.sum, " %q=%q", name, h.PAXRecords[name])
	}
	fmt.Fprintln(p.sum)
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

// header is what a tar says of a file, whose name in it is given.
func (p *packer) header(tree Subtree, file, name string, info fs.FileInfo) (*tar.Header, error) {
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
	if p.o.Dot {
		h.Name = "./" + h.Name
	}
	h.Uname, h.Gname = "", ""
	h.Uid, h.Gid = int(p.o.Owner(uint32(h.Uid))), int(p.o.Owner(uint32(h.Gid)))
	p.reproduce(h, tree)
	if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink > 1 {
		at := inode{st.Dev, st.Ino}
		if first, ok := p.linked[at]; ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
			return h, nil
		}
		p.linked[at] = h.Name
	}
	if !tree.Foreign && (info.Mode().IsRegular() || info.IsDir()) {
		h.PAXRecords, err = attributes(file)
	}
	return h, err
}

// reproduce gives a file the times and the mode that it has in a layer. Whole seconds are never rounded up: interpreters compare
// them with those of their sources.
func (p *packer) reproduce(h *tar.Header, tree Subtree) {
	if tree.Foreign {
		h.Mode &^= 0o6000
	}
	if !p.o.Layer {
		return
	}
	h.ModTime = h.ModTime.Truncate(time.Second)
	if h.Typeflag == tar.TypeDir || tree.Timeless {
		h.ModTime = time.Unix(0, 0)
	}
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
// since unpacking binds it to another one.
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
