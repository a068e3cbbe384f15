// Package pack writes a directory's tree as a tar of which package unpack makes
// the same tree again.
package pack

// Options say what of a tree is written. The zero value writes all that is in
// the directory, as it is read.
type Options struct {
	// Owner gives the user or group that the tar has for the host's; nil: the same.
	Owner func(id uint32) uint32
	// Root has an entry for the directory itself, too.
	Root bool
	// Holes has files with holes written as GNU's tar does (sparse format 1.0 in
	// PAX), so that they take no more in the tar than on disk.
	Holes bool
}
