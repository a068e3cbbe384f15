package debian

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

const maxUnpacked = 8 << 30 // bytes of one package

// An unpacker lays one package's files into a tree.
type unpacker struct {
	tree    *tree
	owner   string
	yields  func(other string) (winner string, err error) // whose is a file that both have?
	shipped []string                                      // paths as in the archive, for dpkg's list
	bytes   int64
}

// unpack reads a data archive.
func (u *unpacker) unpack(r io.Reader) error {
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			// What follows the end mark is read too, for it is hashed and checked there.
			_, err = io.Copy(io.Discard, r)
			return err
		}
		if err != nil {
			return err
		}
		if err := u.entry(h, archive); err != nil {
			return fmt.Errorf("entry %.200q: %w", h.Name, err)
		}
	}
}

func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	name, err := entryName(h.Name)
	if err != nil {
		return err
	}
	u.shipped = append(u.shipped, "/"+name)
	if name == "" || isDocumentation(name, h.Typeflag) {
		return nil
	}
	mine, err := u.mine(name, h.Typeflag)
	if err != nil || !mine {
		return err
	}
	mode := h.FileInfo().Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	m := meta{mode: mode, uid: h.Uid, gid: h.Gid, mtime: h.ModTime, owner: u.owner}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.tree.mkdir(name, m)
	case tar.TypeReg:
		if h.PAXRecords["GNU.sparse.major"] != "" || h.PAXRecords["GNU.sparse.map"] != "" {
			return fmt.Errorf("is sparse: no package has such files, and they can be of any size")
		}
		if u.bytes += h.Size; u.bytes > maxUnpacked {
			return fmt.Errorf("package unpacks to more than %d bytes", int64(maxUnpacked))
		}
		_, err = u.tree.write(name, m, r)
		return err
	case tar.TypeSymlink:
		return u.tree.symlink(name, h.Linkname, m)
	case tar.TypeLink:
		target, err := entryName(h.Linkname)
		if err != nil {
			return fmt.Errorf("hard link to %.200q: %w", h.Linkname, err)
		}
		return u.tree.link(name, target, m)
	}
	return fmt.Errorf("of type %q: only files, directories and links belong in a stack", h.Typeflag)
}

// mine decides about a path that another package has filled already.
func (u *unpacker) mine(name string, kind byte) (bool, error) {
	n := u.tree.lookup(name)
	if n == nil || n.owner == u.owner || n.kind == fs.ModeDir || kind == tar.TypeDir {
		return true, nil
	}
	if n.owner == noPackage { // the links of a merged /usr
		return false, nil
	}
	winner, err := u.yields(n.owner)
	return winner == u.owner, err
}

// entryName turns "./usr/bin/x" into "usr/bin/x". It refuses names that are absolute or go
// up.
func entryName(name string) (string, error) {
	if strings.HasPrefix(name, "/") || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("name is not below the root")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("name goes up")
		}
	}
	if name = path.Clean(name); name == "." {
		return "", nil
	}
	return name, nil
}

// isDocumentation reports what is not unpacked: manuals, all of /usr/share/doc
// except for the copyright files, and message catalogs, since a tree has one
// locale.
func isDocumentation(name string, kind byte) bool {
	if kind == tar.TypeDir {
		return strings.Count(name, "/") > 3 && strings.HasPrefix(name, "usr/share/doc/")
	}
	for _, dir := range []string{"usr/share/man/", "usr/share/info/", "usr/share/lintian/", "usr/share/doc-base/", "usr/share/gtk-doc/"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	if strings.HasPrefix(name, "usr/share/locale/") && strings.HasSuffix(name, ".mo") {
		return true
	}
	rest, ok := strings.CutPrefix(name, "usr/share/doc/")
	if !ok || path.Base(rest) == "copyright" {
		return false
	}
	// A package's directory may itself be a link to that of a sister.
	return strings.Contains(rest, "/") || kind != tar.TypeSymlink
}
