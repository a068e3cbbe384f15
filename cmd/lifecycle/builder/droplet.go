package builder

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"
)

// pack writes the droplet and the build cache.
func (b *builder) pack() error {
	err := writeArchive(b.outputDroplet, func(t *tree) error {
		if err := t.add(b.contents, "."); err != nil {
			return err
		}
		return t.add(b.buildDir, "./app")
	})
	if err != nil {
		return errCompress.by(err)
	}
	err = writeArchive(b.outputCache, func(t *tree) error { return t.add(b.cacheDir, ".") })
	if err != nil {
		return errCache.by(err)
	}
	return nil
}

// Part is a file or directory that an archive has under a name, which begins with "./".
type Part struct{ Path, Name string }

// Pack writes a gzipped tar file, whose files all belong to the user of apps.
func Pack(path string, parts ...Part) error {
	return writeArchive(path, func(t *tree) error {
		for _, p := range parts {
			if err := t.add(p.Path, p.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeArchive writes a gzipped tar file. The fastest level is enough: the
// file goes to a disk nearby and is unpacked soon.
func writeArchive(path string, fill func(*tree) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := newTree(tar.NewWriter(z))
	if err := fill(t); err != nil {
		return err
	}
	if err := t.tw.Close(); err != nil {
		return err
	}
	return z.Close()
}

// copyExactly copies size bytes of the file at path, which its header
// promised; more is left out, less is an error.
func copyExactly(w io.Writer, path string, size int64) error {
	f, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyN(w, f, size); err != nil {
		return fmt.Errorf("%s changed while it was packed: %w", filepath.Base(path), err)
	}
	return nil
}
