// Package pack writes trees of directories as a tar of which package unpack makes the same tree again: the backup of a stack or a
// volume, or the layer of an image.
package pack

import (
	"context"
	"io"
)

// Options say what of a tree is written. The zero value writes all that is in the directory, as it is read.
type Options struct {
	// Owner returns the user or group that the tar has for the host's; nil: the same.
	Owner func(id uint32) uint32
	// Root adds an entry for the directory itself.
	Root bool
	// Holes writes files with holes as GNU's tar does (sparse format 1.0 in PAX), so that they take no more in the tar than on
	// disk.
	Holes bool
	// Layer writes the same bytes for the same files, as layers of images need: times are whole seconds, and directories have
	// none.
	Layer bool
	// Dot writes names that begin with "./", as those of Cloud Foundry's droplets.
	Dot bool
}

// Subtree is a directory or file of this machine at a place in a tar.
type Subtree struct {
	Dir      string
	At       string // relative; "" is the root
	Foreign  bool   // the machine's own files: those that not everybody may read stay out, and none is set-id
	Timeless bool   // no file has a time
}

// Tree is Trees of one directory.
func Tree(ctx context.Context, dir string, o Options, w io.Writer) error {
	return Trees(ctx, []Subtree{{Dir: dir}}, o, w)
}
