package pack

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Zip writes the files, directories and symbolic links in dir as a zip that compresses nothing: the same bytes for the same
// files, whatever their owner. Directories have no times, and files have whole seconds.
func Zip(ctx context.Context, dir string, w io.Writer) error {
	z := &zipper{ctx: ctx, w: zip.NewWriter(w), buf: make([]byte, 1<<20)}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if file == dir {
			return nil
		}
		name, err := filepath.Rel(dir, file)
		if err == nil {
			err = z.add(file, name, e)
		}
		if err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return z.w.Close()
}

type zipper struct {
	ctx context.Context
	w   *zip.Writer
	buf []byte
}

func (z *zipper) add(file, name string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		_, err := z.w.CreateRaw(zipHeader(name+"/", info))
		return err
	case fs.ModeSymlink:
		target, err := os.Readlink(file)
		if err != nil {
			return err
		}
		return z.content(zipHeader(name, info), strings.NewReader(target))
	case 0:
		f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return z.content(zipHeader(name, info), f)
	}
	return nil
}

// content writes what r has. A zip tells the checksum before the content, so that r is read twice.
func (z *zipper) content(h *zip.FileHeader, r io.ReadSeeker) error {
	sum := crc32.NewIEEE()
	n, err := io.CopyBuffer(sum, &reader{z.ctx, r}, z.buf)
	if err != nil {
		return err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	size := uint64(n) //nolint:gosec // it is not negative
	h.CRC32, h.CompressedSize64, h.UncompressedSize64 = sum.Sum32(), size, size
	w, err := z.w.CreateRaw(h)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(w, io.LimitReader(&reader{z.ctx, r}, n), z.buf)
	return err
}

// zipHeader is what a zip tells of a file, but for its content.
func zipHeader(name string, info fs.FileInfo) *zip.FileHeader {
	const version, isUTF8, firstDay = 20, 0x800, 1<<5 | 1
	h := &zip.FileHeader{Name: name, Method: zip.Store, ModifiedDate: firstDay} //nolint:staticcheck // CreateRaw writes these fields
	h.SetMode(info.Mode())
	h.CreatorVersion, h.ReaderVersion = h.CreatorVersion|version, version
	if utf8.ValidString(name) {
		h.Flags = isUTF8
	}
	if !info.IsDir() {
		h.ModifiedDate, h.ModifiedTime, h.Extra = zipTime(info.ModTime()) //nolint:staticcheck // likewise
	}
	return h
}

// zipTime is a time in the form of MS-DOS, and in that of Unix (Info-ZIP's "extended timestamp").
func zipTime(t time.Time) (date, clock uint16, extra []byte) {
	s := min(max(t.Unix(), 0), 1<<32-1)
	extra = []byte{'U', 'T', 5, 0, 1, byte(s), byte(s >> 8), byte(s >> 16), byte(s >> 24)}
	dos := time.Unix(min(max(s, firstDOS), lastDOS), 0).UTC()
	date = uint16(dos.Day() + int(dos.Month())<<5 + (dos.Year()-1980)<<9) //nolint:gosec // it is bounded
	clock = uint16(dos.Second()/2 + dos.Minute()<<5 + dos.Hour()<<11)     //nolint:gosec // likewise
	return date, clock, extra
}

// The times that MS-DOS knows: 1980 to 2107.
const firstDOS, lastDOS = 315532800, 4354819198
