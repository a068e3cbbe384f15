package debian

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	arMagic      = "!<arch>\n"
	arHeaderSize = 60
	// A .deb has three members (deb(5)); more than a few is not a package.
	arMaxMembers = 16
)

// An arMember is one file of an ar archive, to be read in place.
type arMember struct {
	name string
	data *io.SectionReader
}

// readAr lists the members of the ar archive in r, which is size bytes long. It
// reads the headers alone and knows the common format that .deb files use: no
// long names, no symbol tables.
func readAr(r io.ReaderAt, size int64) ([]arMember, error) {
	magic := make([]byte, len(arMagic))
	if _, err := r.ReadAt(magic, 0); err != nil || string(magic) != arMagic {
		return nil, fmt.Errorf("no ar archive")
	}
	var members []arMember
	header := make([]byte, arHeaderSize)
	for at := int64(len(arMagic)); at < size; {
		if len(members) == arMaxMembers {
			return nil, fmt.Errorf("more than %d members in ar archive", arMaxMembers)
		}
		if _, err := r.ReadAt(header, at); err != nil {
			return nil, fmt.Errorf("ar header cut short at byte %d", at)
		}
		name, length, err := parseArHeader(header)
		if err != nil {
			return nil, fmt.Errorf("ar header at byte %d: %w", at, err)
		}
		at += arHeaderSize
		if length > size-at {
			return nil, fmt.Errorf("ar member %s cut short: %d of %d bytes", name, size-at, length)
		}
		members = append(members, arMember{name, io.NewSectionReader(r, at, length)})
		at += length + length%2 // members start at even bytes
	}
	return members, nil
}

func parseArHeader(h []byte) (name string, length int64, err error) {
	if h[58] != '`' || h[59] != '\n' {
		return "", 0, fmt.Errorf("no end mark")
	}
	name = strings.TrimSuffix(strings.TrimRight(string(h[:16]), " "), "/")
	length, err = strconv.ParseInt(strings.TrimRight(string(h[48:58]), " "), 10, 64)
	if err != nil || length < 0 || name == "" {
		return "", 0, fmt.Errorf("no name and size in %q", h)
	}
	return name, length, nil
}
