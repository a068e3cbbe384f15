package unpack

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// entry is what an archive says of one file, its name cleaned.
type entry struct {
	name     string
	mode     fs.FileMode // permission and set-id bits
	uid, gid int
	mtime    time.Time
	size     int64             // of a file, as the archive says
	xattrs   map[string]string // of an image's file or directory
}

// sink receives the entries that passed the rules.
type sink interface {
	dir(e entry) error
	file(e entry, r io.Reader, buf []byte) error
	symlink(e entry, to string) error
	fifo(e entry) error
	link(e entry, to string) error
	whiteout(name string) error
	opaque(dir string) error
}

// walk holds the rules over one archive.
type walk struct {
	to    sink
	o     Options
	lim   Limits
	stats Stats
	size  int64 // of the archive
	links map[string]struct{}
	buf   []byte
}

func newWalk(to sink, o Options) *walk {
	return &walk{to: to, o: o, lim: o.Limits.Filled(), links: map[string]struct{}{}, buf: make([]byte, 256<<10)}
}

func (w *walk) archive(ctx context.Context, a *io.SectionReader) error {
	w.size = a.Size()
	var magic [2]byte
	if _, err := a.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return fmt.Errorf("read archive: %w", err)
	}
	if string(magic[:]) == "PK" && !w.o.Image { // no layer is a zip, but a tar's first name may begin so
		return w.zip(ctx, a)
	}
	return w.tar(ctx, io.NewSectionReader(a, 0, w.size))
}

// count admits one more entry.
func (w *walk) count(ctx context.Context) error {
	w.stats.Entries++
	if w.lim.Entries > 0 && w.stats.Entries > w.lim.Entries {
		return &EntryError{Reason: fmt.Sprintf("has more than %d entries", w.lim.Entries)}
	}
	return ctx.Err()
}

// add puts one entry into the sink. kind is the type bits of its mode; r holds a regular file's content.
func (w *walk) add(e entry, kind fs.FileMode, target string, r io.Reader) error {
	if !w.o.Image {
		e.mode &= fs.ModePerm
		if above, ok := linkAbove(e.name, w.links); ok {
			return &EntryError{Name: e.name, Reason: fmt.Sprintf("goes through the symbolic link %q", above)}
		}
	}
	if w.o.Image && !w.o.Verbatim && kind == 0 && strings.HasPrefix(path.Base(e.name), whiteoutPrefix) {
		return w.hide(e.name)
	}
	switch kind {
	case fs.ModeDir:
		return w.to.dir(e)
	case 0:
		return w.to.file(e, &meter{w: w, r: r}, w.buf)
	case fs.ModeSymlink:
		return w.symlink(e, target)
	}
	return w.special(e, kind)
}

func (w *walk) symlink(e entry, target string) error {
	switch {
	case target == "" || len(target) > maxName || strings.ContainsRune(target, 0):
		return &EntryError{Name: e.name, Reason: "is a symbolic link with a bad target"}
	case e.name == ".":
		return &EntryError{Name: e.name, Reason: "replaces the root with a link"}
	}
	if !w.o.Image {
		w.links[e.name] = struct{}{}
	}
	return w.to.symlink(e, target)
}

// link adds a hard link to an earlier entry.
func (w *walk) link(e entry, target string) error {
	to, err := cleanName(target, w.o.Image)
	if err != nil || to == "." {
		return &EntryError{Name: e.name, Reason: fmt.Sprintf("is a link with a bad target %q", target)}
	}
	if !w.o.Image {
		for _, name := range []string{e.name, to} {
			if above, ok := linkAbove(name, w.links); ok {
				return &EntryError{Name: e.name, Reason: fmt.Sprintf("goes through the symbolic link %q", above)}
			}
		}
		if _, ok := w.links[to]; ok {
			w.links[e.name] = struct{}{}
		}
	}
	return w.to.link(e, to)
}

// The whiteouts of the OCI image layer format.
const (
	whiteoutPrefix = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
)

func (w *walk) hide(name string) error {
	dir, base := path.Split(name)
	if base == whiteoutOpaque {
		return w.to.opaque(path.Clean(dir))
	}
	if strings.HasPrefix(base, ".wh..wh.") { // aufs bookkeeping, of no meaning here
		return nil
	}
	hidden := strings.TrimPrefix(base, whiteoutPrefix)
	if hidden == "" || hidden == "." || hidden == ".." {
		return &EntryError{Name: name, Reason: "is a whiteout of nothing"}
	}
	return w.to.whiteout(path.Join(dir, hidden))
}

// meter counts a file's bytes against the limits.
type meter struct {
	w *walk
	r io.Reader
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	w := m.w
	w.stats.Bytes += int64(n)
	if w.lim.Bytes > 0 && w.stats.Bytes > w.lim.Bytes {
		return 0, &EntryError{Reason: fmt.Sprintf("unpacks to more than %d bytes", w.lim.Bytes)}
	}
	if w.lim.Ratio > 0 && w.stats.Bytes > ratioFloor && w.stats.Bytes/w.lim.Ratio > w.size {
		return 0, &EntryError{Reason: fmt.Sprintf("unpacks to more than %d times its size", w.lim.Ratio)}
	}
	return n, err
}
