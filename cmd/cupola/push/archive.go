package push

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/klauspost/compress/flate"

	"cupola/server/cfignore"
)

// zipApp writes the files of an app as a zip, without what .cfignore names.
func zipApp(w io.Writer, app fs.FS) (files int, err error) {
	skip, err := ignorer(app)
	if err != nil {
		return 0, err
	}
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, fastest())
	err = fs.WalkDir(app, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if skip.Skips(name, d.IsDir()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() {
			files++
		}
		return addFile(z, app, name, d)
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("no files to push")
	}
	if err != nil {
		return 0, err
	}
	return files, z.Close()
}

func ignorer(app fs.FS) (cfignore.Matcher, error) {
	text, err := fs.ReadFile(app, cfignore.File)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return cfignore.New(string(text)), err
}

// fastest compresses with little processor time: the daemon is near, and mostly
// the same machine. The files of an archive, of which one is written at a time, share a
// compressor: its tables take a megabyte.
func fastest() zip.Compressor {
	var z *flate.Writer
	return func(w io.Writer) (_ io.WriteCloser, err error) {
		if z != nil {
			z.Reset(w)
			return z, nil
		}
		z, err = flate.NewWriter(w, flate.BestSpeed)
		return z, err
	}
}

func addFile(z *zip.Writer, app fs.FS, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h, err := zip.FileInfoHeader(info)
	if err != nil {
		return err
	}
	h.Name, h.Method = name, zip.Deflate
	switch {
	case d.IsDir():
		h.Name, h.Method = path.Clean(name)+"/", zip.Store
		_, err = z.CreateHeader(h)
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return addLink(z, app, h)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file, directory or symbolic link: add it to .cfignore", name)
	}
	f, err := app.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	to, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return err
}

func addLink(z *zip.Writer, app fs.FS, h *zip.FileHeader) error {
	target, err := fs.ReadLink(app, h.Name)
	if err != nil {
		return err
	}
	to, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = io.WriteString(to, target)
	return err
}
