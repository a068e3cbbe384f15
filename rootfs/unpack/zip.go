package unpack

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"

	"github.com/klauspost/compress/flate"
)

// zip walks the zip archive f.
func (w *walk) zip(ctx context.Context, f io.ReaderAt) error {
	zr, err := zip.NewReader(f, w.size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // the names get our own check
		return &EntryError{Reason: "is damaged: " + err.Error()}
	}
	inflate := newInflaters()
	zr.RegisterDecompressor(zip.Deflate, inflate.reader)
	var done int64
	for _, zf := range zr.File {
		if err := w.zipEntry(ctx, zf); err != nil {
			return err
		}
		done += int64(zf.CompressedSize64)
		if w.o.Progress != nil {
			w.o.Progress(done)
		}
	}
	return nil
}

func (w *walk) zipEntry(ctx context.Context, zf *zip.File) error {
	if err := w.count(ctx); err != nil {
		return err
	}
	name, err := cleanName(zf.Name, w.o.Image)
	if err != nil {
		return err
	}
	info := zf.Mode()
	e := entry{name: name, mode: zipMode(info), mtime: sane(zf.Modified), size: int64(zf.UncompressedSize64)}
	kind := info.Type()
	if kind != 0 && kind != fs.ModeSymlink {
		return w.add(e, kind, "", nil)
	}
	r, err := zf.Open()
	if err != nil {
		return &EntryError{Name: zf.Name, Reason: "is damaged: " + err.Error()}
	}
	defer r.Close()
	r = decoded{r}
	if kind == 0 {
		return w.add(e, 0, "", r)
	}
	target, err := io.ReadAll(io.LimitReader(r, maxName+1))
	if err != nil {
		return err
	}
	return w.add(e, kind, string(target), nil)
}

// zipMode gives the owner access whatever the machine that made the zip knew of modes, and others no more than reading.
func zipMode(m fs.FileMode) fs.FileMode {
	perm := m &^ fs.ModeType &^ 0o022
	if m.IsDir() {
		return perm | 0o700
	}
	if perm&fs.ModePerm == 0 {
		return 0o644
	}
	return perm | 0o600
}

// inflaters re-uses decompressors: a zip of 10 000 small files would else allocate 40 KB for each.
type inflaters struct{ pool sync.Pool }

func newInflaters() *inflaters { return &inflaters{} }

func (p *inflaters) reader(r io.Reader) io.ReadCloser {
	fr, ok := p.pool.Get().(io.ReadCloser)
	if !ok {
		return &inflater{ReadCloser: flate.NewReader(r), pool: &p.pool}
	}
	// A reset of a flate reader cannot fail: it has no header to read.
	_ = fr.(flate.Resetter).Reset(r, nil)
	return &inflater{ReadCloser: fr, pool: &p.pool}
}

type inflater struct {
	io.ReadCloser
	pool *sync.Pool
}

func (f *inflater) Close() error {
	err := f.ReadCloser.Close()
	f.pool.Put(f.ReadCloser)
	return err
}
