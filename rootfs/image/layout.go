package image

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"cupola/rootfs/oci"
)

// layoutDir is an OCI image layout that an image comes from.
type layoutDir struct{ root *os.Root }

// openLayout finds the digest of the one image for this machine in a layout.
func openLayout(dir string) (layoutDir, string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return layoutDir{}, "", err
	}
	l := layoutDir{root}
	var index oci.Manifest
	text, err := l.read("index.json")
	if err == nil {
		err = json.Unmarshal(text, &index)
	}
	if err != nil {
		return l, "", fmt.Errorf("not an OCI image layout: %w", err)
	}
	if n := len(oci.Fitting(index.Manifests)); n > 1 {
		return l, "", fmt.Errorf("it holds %d images", n)
	}
	d, err := oci.Choose(oci.Fitting(index.Manifests))
	return l, d.Digest, err
}

func (l layoutDir) read(name string) ([]byte, error) {
	f, err := l.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, oci.MaxDocument+1))
}

// Manifest reads a document.
func (l layoutDir) Manifest(_ context.Context, digest string) ([]byte, error) {
	name, _, err := oci.BlobFile(digest)
	if err != nil {
		return nil, err
	}
	return l.read(name)
}

// Blob opens a blob.
func (l layoutDir) Blob(_ context.Context, digest string, from int64) (io.ReadCloser, int64, error) {
	name, _, err := oci.BlobFile(digest)
	if err != nil {
		return nil, 0, err
	}
	f, err := l.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	_, err = f.Seek(from, io.SeekStart)
	return f, from, err
}
