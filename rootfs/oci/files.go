package oci

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"cupola/rootfs/unpack"
	"cupola/runtime/pattern"
)

// Archive is the set of files that an image comes as: an OCI image layout, or what docker save writes.
type Archive struct{ files }

// files are a directory, or a tar read in place.
type files interface {
	has(name string) bool
	// Open gives access to a file until the archive is closed.
	Open(name string) (*io.SectionReader, error)
	io.Closer
}

// dirFiles is a directory; os.Root keeps the names in its documents inside.
type dirFiles struct {
	root   *os.Root
	opened []*os.File
}

// OpenDir opens a directory with the files of an image.
func OpenDir(dir string) (*Archive, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Archive{&dirFiles{root: root}}, nil
}

func (d *dirFiles) has(name string) bool {
	st, err := d.root.Stat(name)
	return err == nil && st.Mode().IsRegular()
}

// Open opens a file of the directory.
func (d *dirFiles) Open(name string) (*io.SectionReader, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	d.opened = append(d.opened, f)
	return unpack.Section(f)
}

// Close closes what was opened.
func (d *dirFiles) Close() error {
	for _, f := range d.opened {
		f.Close()
	}
	return d.root.Close()
}

// tarFiles is an uncompressed tar and where its files lie in it.
type tarFiles struct {
	f     *os.File
	files map[string]tarSpan
	links map[string]string // docker saves a layer used twice as a link
}

type tarSpan struct{ off, size int64 }

// OpenTar indexes an uncompressed tar, which the archive closes.
func OpenTar(f *os.File) (*Archive, error) {
	b := &tarFiles{f: f, files: map[string]tarSpan{}, links: map[string]string{}}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	tr := tar.NewReader(f)
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			return &Archive{b}, nil
		}
		if err != nil {
			return nil, &unpack.EntryError{Reason: "is damaged: " + err.Error()}
		}
		name := path.Clean(hdr.Name)
		switch hdr.Typeflag {
		case tar.TypeReg:
			off, err := f.Seek(0, io.SeekCurrent) // a tar reader reads headers alone, and not ahead
			if err != nil {
				return nil, err
			}
			b.files[name] = tarSpan{off, hdr.Size}
		case tar.TypeSymlink:
			b.links[name] = path.Join(path.Dir(name), hdr.Linkname)
		case tar.TypeLink:
			b.links[name] = path.Clean(hdr.Linkname)
		}
	}
}

func (b *tarFiles) span(name string) (tarSpan, bool) {
	name = path.Clean(name)
	for range 8 {
		if to, ok := b.links[name]; ok {
			name = to
		}
	}
	s, ok := b.files[name]
	return s, ok
}

func (b *tarFiles) has(name string) bool {
	_, ok := b.span(name)
	return ok
}

// Open gives access to a file in the tar.
func (b *tarFiles) Open(name string) (*io.SectionReader, error) {
	s, ok := b.span(name)
	if !ok {
		return nil, fmt.Errorf("archive has no file %s", name)
	}
	return io.NewSectionReader(b.f, s.off, s.size), nil
}

// Close closes the tar.
func (b *tarFiles) Close() error { return b.f.Close() }

// imageEntry matches what archives of images hold at their top, and no root file system does.
var imageEntry = pattern.Lazy(`^(blobs|oci-layout|index\.json|manifest\.json|repositories|[0-9a-f]{64}(\.json|\.tar|\.tar\.gz)?|sha256:[0-9a-f]{64})$`)

// IsArchive reports whether an archive is of an image, not of a root file system, by its first entry.
func IsArchive(a *io.SectionReader) (bool, error) {
	plain, err := unpack.Decompress(io.NewSectionReader(a, 0, a.Size()))
	if err != nil {
		return false, err
	}
	defer plain.Close()
	hdr, err := tar.NewReader(plain).Next()
	if err == io.EOF {
		return false, &unpack.EntryError{Reason: "is empty"}
	}
	if err != nil {
		return false, &unpack.EntryError{Reason: "is not a tar archive: " + err.Error()}
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(path.Clean(hdr.Name), "/"), "/")
	return imageEntry().MatchString(top), nil
}

// PlainTar returns the tar in f as an uncompressed file: f itself, or a copy at tmp.
func PlainTar(ctx context.Context, f *os.File, tmp string, progress func(int64)) (*os.File, error) {
	archive, err := unpack.Section(f)
	if err != nil {
		return nil, err
	}
	var magic [262]byte
	if _, err := archive.ReadAt(magic[:], 0); err == nil && string(magic[257:262]) == "ustar" {
		return os.Open(f.Name())
	}
	plain, err := unpack.Decompress(&progressReader{ctx: ctx, r: archive, report: progress})
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	out, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(out, plain); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// progressReader reports how far it was read, and ends with its context.
type progressReader struct {
	ctx    context.Context
	r      io.Reader
	n      int64
	report func(int64)
}

func (p *progressReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	p.n += int64(n)
	p.report(p.n)
	return n, err
}
