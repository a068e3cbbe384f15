package releases

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/director"
	"cupola/server/bosh/release"
	"cupola/store/blob"
)

// Write writes the tarball of a release whose archives are blobs: the same bytes each
// time. The archives are compressed, so that the tarball is not.
func Write(m *release.Manifest, blobs *blob.Store, to io.Writer) error {
	z, err := gzip.NewWriterLevel(to, gzip.NoCompression)
	if err != nil {
		return err
	}
	out := tar.NewWriter(z)
	var text bytes.Buffer
	if err := yaml.NewEncoder(&text).Encode(m); err != nil {
		return err
	}
	if err := add(out, release.ManifestFile, int64(text.Len()), &text); err != nil {
		return err
	}
	for _, of := range []struct {
		dir string
		all []release.Archived
	}{{"jobs", m.Jobs}, {"packages", m.Packages}, {"compiled_packages", m.Compiled}} {
		for _, a := range of.all {
			if err := addBlob(out, of.dir+"/"+a.Name+".tgz", a, blobs); err != nil {
				return err
			}
		}
	}
	return errors.Join(out.Close(), z.Close())
}

func addBlob(out *tar.Writer, name string, a release.Archived, blobs *blob.Store) error {
	f, err := blobs.Open(strings.TrimPrefix(a.Digest, "sha256:"))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return add(out, name, info.Size(), f)
}

func add(out *tar.Writer, name string, size int64, content io.Reader) error {
	if err := out.WriteHeader(&tar.Header{Name: "./" + name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err := io.Copy(out, content)
	return err
}

// Open writes the tarball of an exported release into a file without a name.
func (l Library) Open(e *director.Exported) (*os.File, error) {
	t, err := l.Blobs.Temp()
	if err != nil {
		return nil, err
	}
	defer t.Discard()
	if err := Write(&e.Manifest, l.Blobs, t); err != nil {
		return nil, err
	}
	return os.Open(t.Name())
}
