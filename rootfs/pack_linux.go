package rootfs

import (
	"archive/tar"
	"context"
	"crypto/sha256"
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
	"syscall"
	"time"

	"cupola/rootfs/pack"
)

// packTree writes a stack's tree as a tar. Devices and sockets, of which a
// stack has none, are left out.
func packTree(ctx context.Context, dir string, ids IDMap, w io.Writer) error {
	p := &packer{t: tar.NewWriter(w), ids: ids, linked: map[inode]string{}}
	if err := p.tree(ctx, subtree{dir: dir}); err != nil {
		return err
	}
	return p.t.Close()
}

// packTrees writes trees as the tar of an image's layer, the same bytes for the same files. Where files lie in several
// trees, those of the last one count.
func packTrees(ctx context.Context, trees []subtree, ids IDMap, w io.Writer) error {
	p := newLayerPacker(trees, ids)
	p.t = tar.NewWriter(w)
	for _, tree := range trees {
		if err := p.tree(ctx, tree); err != nil {
			return err
		}
	}
	return p.t.Close()
}

// fingerprintTrees gives what changes when packTrees would write something else, by what directories tell of their files, and
// how many bytes these have.
func fingerprintTrees(ctx context.Context, trees []subtree, ids IDMap) (sum string, bytes int64, err error) {
	p := newLayerPacker(trees, ids)
	p.sum = sha256.New()
	for _, tree := range trees {
		if err := p.tree(ctx, tree); err != nil {
			return "", 0, err
		}
	}
	return hex.EncodeToString(p.sum.Sum(nil)), p.bytes, nil
}

func newLayerPacker(trees []subtree, ids IDMap) *packer {
	p := &packer{ids: ids, linked: map[inode]string{}, covered: map[string]bool{}, layer: true}
	for _, tree := range trees {
		p.covered[tree.at] = true
	}
	return p
}

type packer struct {
	t       *tar.Writer
	sum     hash.Hash // in its place: takes what the headers say
	bytes   int64     // of the files that sum has seen
	ids     IDMap
	linked  map[inode]string // first name of files with several
	covered map[string]bool  // where a tree lies
	layer   bool             // times are whole seconds, and directories have none
}

type inode struct{ dev, ino uint64 }

func (p *packer) tree(ctx context.Context, tree subtree) error {
	return filepath.WalkDir(tree.dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(tree.dir, file)
		if err != nil {
			return err
		}
		name = path.Join(tree.at, name)
		switch {
		case name == ".":
			return nil
		case file != tree.dir && p.covered[name] && e.IsDir():
			return fs.SkipDir
		case file != tree.dir && p.covered[name]:
			return nil
		}
		return p.file(tree, file, name)
	})
}

func (p *packer) file(tree subtree, file, name string) error {
	info, err := os.Lstat(file)
	if err != nil || info.Mode()&(fs.ModeDevice|fs.ModeSocket) != 0 {
		return err
	}
	if tree.foreign && info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0 {
		return nil
	}
	h, err := p.header(tree, file, name, info)
	if err != nil {
		return err
	}
	if err := p.write(h, file); err != nil {
		return err
	}
	if tree.foreign && info.IsDir() && info.Mode().Perm()&0o001 == 0 {
		return fs.SkipDir
	}
	return nil
}

func (p *packer) write(h *tar.Header, file string) error {
	if p.sum != nil {
		p.bytes += h.Size
		records := slices.Sorted(maps.Keys(h.PAXRecords))
		fmt.Fprintf(p.sum, "%q %q %d %o %d %d %d %d", h.Name, h.Linkname, h.Typeflag, h.Mode, h.Uid, h.Gid, h.Size, h.ModTime.UnixNano())
		for _, name := range records {
			fmt.Fprintf(p.sum, " %q=%q", name, h.PAXRecords[name])
		}
		fmt.Fprintln(p.sum)
		return nil
	}
	if err := p.t.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = io.CopyN(p.t, f, h.Size); err != nil {
		return fmt.Errorf("pack %s: %w", h.Name, err)
	}
	return nil
}

func (p *packer) header(tree subtree, file, name string, info fs.FileInfo) (*tar.Header, error) {
	h, err := pack.Header(file, name, info, p.ids.ownerInside)
	if err != nil {
		return nil, err
	}
	p.settle(h, tree)
	if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink > 1 {
		at := inode{st.Dev, st.Ino}
		if first, ok := p.linked[at]; ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
			return h, nil
		}
		p.linked[at] = h.Name
	}
	if !tree.foreign && (info.Mode().IsRegular() || info.IsDir()) {
		h.PAXRecords, err = pack.Attributes(file)
	}
	return h, err
}

// settle gives a file the times and the mode that it has in a layer. Whole seconds are never rounded up: interpreters compare
// them with those of their sources.
func (p *packer) settle(h *tar.Header, tree subtree) {
	if tree.foreign {
		h.Mode &^= 0o6000
	}
	if !p.layer {
		return
	}
	h.ModTime = h.ModTime.Truncate(time.Second)
	if h.Typeflag == tar.TypeDir || tree.timeless {
		h.ModTime = time.Unix(0, 0)
	}
}
