// Package unpack writes tar and zip archives into a directory, and nothing outside of it.
//
// Archives come from two kinds of people. Application archives (app bits, buildpacks, droplets) are hostile until
// proven otherwise: a name that is absolute or climbs with "..", a write through a symbolic link, a device, a set-id
// bit has no business there. Images of operating systems are chosen by the operator and need more: whiteouts, links
// that are absolute inside the image, set-id bits. Options.Image says which rules hold. Under both, the kernel itself
// (openat2) keeps every path below the target directory, so that the checks on names are for clear errors and the
// kernel for safety.
package unpack

import (
	"context"
	"fmt"
	"io"
	"os"
)

// Options says how an archive is unpacked. The zero value unpacks an application archive with the default limits and
// leaves every file to the calling user.
type Options struct {
	// Owner maps the numeric owner an archive names to the one on this host. Nil leaves the owner alone.
	Owner func(uid, gid int) (hostUID, hostGID int)
	// Image selects the rules for an operating system's files: OCI whiteouts are applied, links are followed inside
	// the root, set-id and sticky bits stay as do users' extended attributes and file capabilities, FIFOs are made, and
	// devices in /dev are left out, since containers have their own /dev. Other devices are refused under both.
	Image bool
	// Verbatim has no names that are marks: files of an Image called like whiteouts are files. It is for what pack.Tree wrote.
	Verbatim bool
	// Plain, when set, is written the tar as it is without compression, to the last byte.
	Plain io.Writer
	// Twins are files that the archive may have copies of; nil: none.
	Twins  *Twins
	Limits Limits
	// Progress, when set, is called with the growing number of archive bytes read.
	Progress func(done int64)
}

// Limits bounds what one archive may become. A zero field means its default, a negative one no limit.
type Limits struct {
	Entries int   // default 1 000 000
	Bytes   int64 // of all files together; default 32 GiB
	Ratio   int64 // unpacked bytes per archive byte, looked at beyond 256 MiB; default 250
}

// Stats is what an archive turned out to hold.
type Stats struct {
	Entries int
	Bytes   int64 // of regular files
}

// EntryError is an archive's own fault: retrying will not help, and the sender may see the text.
type EntryError struct {
	Name   string // the entry as the archive spells it; empty when the archive as a whole is at fault
	Reason string
}

func (e *EntryError) Error() string {
	if e.Name == "" {
		return "archive " + e.Reason
	}
	return fmt.Sprintf("archive entry %q %s", e.Name, e.Reason)
}

const (
	defaultEntries = 1_000_000
	defaultBytes   = 32 << 30
	defaultRatio   = 250
	ratioFloor     = 256 << 20
)

// Filled returns l with its defaults in place of zeros.
func (l Limits) Filled() Limits {
	if l.Entries == 0 {
		l.Entries = defaultEntries
	}
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.Ratio == 0 {
		l.Ratio = defaultRatio
	}
	return l
}

// Into unpacks an archive (zip, or tar in any compression of Decompress) into the open directory dir. When it returns an
// error dir may hold a part of the archive: unpack into a directory that can be thrown away.
func Into(ctx context.Context, dir *os.File, archive *io.SectionReader, o Options) (Stats, error) {
	t := newTarget(dir, o)
	defer t.forget()
	w := newWalk(t, o)
	err := w.archive(ctx, archive)
	if err == nil {
		err = t.finish()
	}
	return w.stats, err
}

// Section returns all of a file as an archive.
func Section(f *os.File) (*io.SectionReader, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f, 0, st.Size()), nil
}
