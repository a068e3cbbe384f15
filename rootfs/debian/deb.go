package debian

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const (
	maxControl  = 64 << 20 // symbols files are the largest, a few MB
	maxUnpacked = 8 << 30  // of one package
)

// A deb is an opened package file (deb(5)).
type deb struct {
	file    *os.File
	control paragraph
	members map[string][]byte // of the control archive, but control itself
	data    arMember
}

// openDeb reads the control archive; data is left for unpack.
func openDeb(name string) (_ *deb, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	members, err := readAr(f, info.Size())
	if err != nil {
		return nil, err
	}
	d := &deb{file: f}
	var control arMember
	for _, m := range members {
		switch {
		case strings.HasPrefix(m.name, "control.tar"):
			control = m
		case strings.HasPrefix(m.name, "data.tar"):
			d.data = m
		}
	}
	if len(members) == 0 || members[0].name != "debian-binary" || control.data == nil || d.data.data == nil {
		return nil, fmt.Errorf("no package: it needs debian-binary, control.tar and data.tar")
	}
	return d, d.readControl(control)
}

func (d *deb) close() error { return d.file.Close() }

// readControl keeps every regular file of the control archive in memory.
func (d *deb) readControl(m arMember) error {
	r, err := decompress(m.name, m.data)
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	defer r.Close()
	d.members = make(map[string][]byte)
	left := int64(maxControl)
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		name := strings.TrimPrefix(h.Name, "./")
		if h.Typeflag != tar.TypeReg || !isControlName(name) {
			continue
		}
		content, err := readAllLimited(archive, left)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", m.name, name, err)
		}
		left -= int64(len(content))
		d.members[name] = content
	}
	for p, err := range paragraphs(string(d.members["control"])) {
		if err != nil {
			return fmt.Errorf("control: %w", err)
		}
		delete(d.members, "control")
		d.control = p
		return nil
	}
	return fmt.Errorf("no control file in %s", m.name)
}

func isControlName(s string) bool {
	return s != "" && s[0] != '.' && len(s) < 64 && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

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

// entryName turns "./usr/bin/x" into "usr/bin/x". Names that are absolute or go
// up are refused, not mended.
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

// isDocumentation tells what is not unpacked, as in CF's own stacks: manuals and
// all of /usr/share/doc but the copyright files.
func isDocumentation(name string, kind byte) bool {
	for _, dir := range []string{"usr/share/man/", "usr/share/info/", "usr/share/lintian/", "usr/share/doc-base/", "usr/share/gtk-doc/"} {
		if strings.HasPrefix(name, dir) && kind != tar.TypeDir {
			return true
		}
	}
	rest, ok := strings.CutPrefix(name, "usr/share/doc/")
	if !ok || path.Base(rest) == "copyright" {
		return false
	}
	// A package's directory may itself be a link to that of a sister.
	return strings.Contains(rest, "/") || kind == tar.TypeReg || kind == tar.TypeLink
}
