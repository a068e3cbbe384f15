package debian

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"strings"
)

const maxControl = 64 << 20 // symbols files are the largest, a few MB

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
