package unpack

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// tar walks the tar stream r, which may be compressed.
func (w *walk) tar(ctx context.Context, r io.Reader) error {
	counted := &counter{r: r, progress: w.o.Progress}
	plain, err := Decompress(counted)
	if err != nil {
		return err
	}
	defer plain.Close()
	var source io.Reader = plain
	if w.o.Plain != nil {
		source = io.TeeReader(plain, w.o.Plain)
	}
	ahead := readAhead(source)
	defer ahead.end()
	tr := tar.NewReader(ahead)
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			return w.drain(ctx, ahead)
		}
		if err != nil {
			return damaged(err)
		}
		if err := w.header(ctx, hdr, tr); err != nil {
			return damaged(err)
		}
	}
}

// drain reads what follows the end mark, so that the compression's checksum is looked at.
func (w *walk) drain(ctx context.Context, r io.Reader) error {
	const most = 16 << 20 // tar pads to a record; more is another matter
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(r, most), w.buf); err != nil {
		return damaged(err)
	}
	return ctx.Err()
}

func (w *walk) header(ctx context.Context, hdr *tar.Header, r io.Reader) error {
	if hdr.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if err := w.count(ctx); err != nil {
		return err
	}
	name, err := cleanName(hdr.Name, w.o.Image)
	if err != nil {
		return err
	}
	info := hdr.FileInfo().Mode()
	e := entry{name: name, mode: info &^ fs.ModeType, uid: hdr.Uid, gid: hdr.Gid, mtime: sane(hdr.ModTime), size: hdr.Size}
	if w.o.Image {
		e.xattrs = xattrsOf(hdr)
	}
	switch hdr.Typeflag {
	case tar.TypeReg, tar.TypeRegA, tar.TypeCont, tar.TypeGNUSparse: //nolint:staticcheck // old archives have TypeRegA
		return w.add(e, 0, "", r)
	case tar.TypeDir:
		return w.add(e, fs.ModeDir, "", nil)
	case tar.TypeSymlink:
		return w.add(e, fs.ModeSymlink, hdr.Linkname, nil)
	case tar.TypeLink:
		return w.link(e, hdr.Linkname)
	case tar.TypeChar:
		return w.add(e, fs.ModeDevice|fs.ModeCharDevice, "", nil)
	case tar.TypeBlock:
		return w.add(e, fs.ModeDevice, "", nil)
	case tar.TypeFifo:
		return w.add(e, fs.ModeNamedPipe, "", nil)
	}
	return &EntryError{Name: name, Reason: fmt.Sprintf("is of the unknown type %q", hdr.Typeflag)}
}

// xattrsOf returns the extended attributes that a layer may set: those that concern only its own files. Attributes of the
// kernel, such as trusted.overlay of overlay file systems, are left out.
func xattrsOf(hdr *tar.Header) (kept map[string]string) {
	for key, value := range hdr.PAXRecords {
		name, ok := strings.CutPrefix(key, "SCHILY.xattr.")
		if ok && (name == capability || strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = value
		}
	}
	return kept
}

const capability = "security.capability"

// sane keeps a time within what every file system takes.
func sane(t time.Time) time.Time {
	if t.Unix() < 0 || t.Unix() > 1<<33 {
		return time.Unix(0, 0)
	}
	return t
}

// damaged turns what the tar reader says of a broken archive into its fault.
func damaged(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrHeader) {
		return blame(err)
	}
	return err
}
