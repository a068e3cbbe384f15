package uploads

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Droplet checks an uploaded droplet: a gzipped tar of files, directories and
// links, none outside its tree. Targets of symbolic links are not checked:
// buildpacks make absolute ones, and a container confines them.
func Droplet(ctx context.Context, f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := gzip.NewReader(bufio.NewReader(&ctxReader{ctx, f}))
	if err != nil {
		return &refusal{"", "is not a valid tgz file"}
	}
	d := &dropletChecker{check: newChecker(defaultLimits), tar: tar.NewReader(z)}
	for {
		h, err := d.tar.Next()
		if err == io.EOF {
			return d.complete()
		}
		if err == nil {
			err = d.entry(h)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return invalidTar(err)
		}
	}
}

type dropletChecker struct {
	check *checker
	tar   *tar.Reader
	files int
}

func (d *dropletChecker) entry(h *tar.Header) error {
	mode := h.FileInfo().Mode()
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeSymlink:
	case tar.TypeLink:
		mode = 0
		if _, err := cleanPath(h.Linkname); err != nil {
			return err
		}
	default:
		return &refusal{h.Name, "is neither a file, a directory nor a link"}
	}
	if mode.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0 {
		return &refusal{h.Name, "is neither a file, a directory nor a link"}
	}
	if _, err := d.check.entry(h.Name, mode); err != nil {
		return err
	}
	d.files++
	if h.Size > d.check.left {
		return d.check.tooLarge()
	}
	n, err := io.Copy(io.Discard, d.tar)
	d.check.left -= n
	return err
}

func (d *dropletChecker) complete() error {
	if d.files == 0 {
		return &refusal{"", "holds no files"}
	}
	return nil
}

// invalidTar wraps err as a refusal, unless it already is one.
func invalidTar(err error) error {
	var e *refusal
	if errors.As(err, &e) {
		return err
	}
	return &refusal{"", "is not a valid tgz file: " + err.Error()}
}
