package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"cupola/rootfs/oci"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/tree"
)

// Unpacked is an image with its unpacked layers, the lowest first.
type Unpacked struct {
	Image
	Pulled time.Time
	Names  []string // for a lease
	Dirs   []string
}

// Unpacked finds an image by its digest.
func (s *Cache) Unpacked(digest string) (Unpacked, error) {
	c, err := s.record(digest)
	if err != nil {
		return Unpacked{}, err
	}
	u := Unpacked{Image: c.Image, Pulled: c.Pulled, Names: c.Chains}
	for _, key := range c.Chains {
		u.Dirs = append(u.Dirs, s.store.Path("chains", key, tree.FS))
	}
	return u, nil
}

// Use finds the image of a reference without asking a registry, and notes the use. It must be in the cache; a reference of a
// registry must have a digest.
func (s *Cache) Use(r reference.Reference) (Unpacked, error) {
	digest, err := s.digestOf(r)
	if err != nil {
		return Unpacked{}, fmt.Errorf("%s: %w", r, err)
	}
	u, err := s.Unpacked(digest)
	if err != nil {
		return Unpacked{}, fmt.Errorf("%s: %w", r, err)
	}
	s.touch(digest)
	return u, nil
}

// digestOf returns the digest that a reference means without asking a registry. A layout that is gone means the image that was
// pulled from it.
func (s *Cache) digestOf(r reference.Reference) (string, error) {
	if r.Scheme == reference.SchemeDocker && r.Digest == "" {
		return "", fmt.Errorf("%w: it is not named by its digest", ErrNotPulled)
	}
	if r.Scheme == reference.SchemeDocker {
		return r.Digest, nil
	}
	l, digest, err := openLayout(r.Name)
	if l.root != nil {
		l.root.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return digest, err
	}
	all, lerr := s.records()
	if lerr != nil {
		return "", lerr
	}
	for _, c := range all {
		if slices.Contains(c.Origins, r.String()) {
			return c.Digest, nil
		}
	}
	return "", err
}

// PullLayout pulls the image of an OCI layout unless it is in the cache.
func (s *Cache) PullLayout(ctx context.Context, r reference.Reference) error {
	digest, err := s.digestOf(r)
	if err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	if _, err := s.record(digest); !errors.Is(err, ErrNotPulled) {
		return err
	}
	_, err = s.Pull(ctx, r, PullOptions{})
	return err
}

// manifest reads the record and the manifest of an image in the cache.
func (s *Cache) manifest(digest string) (c record, m oci.Manifest, err error) {
	if c, err = s.record(digest); err != nil {
		return c, m, err
	}
	text, err := readLimited(s.store.Path("oci", c.Blobs[0]))
	if err != nil {
		return c, m, err
	}
	m, err = oci.ParseManifest(text)
	return c, m, err
}

// Layers returns the layers of an image as they were pulled, the lowest first.
func (s *Cache) Layers(digest string) ([]registry.Layer, error) {
	c, m, err := s.manifest(digest)
	if err != nil {
		return nil, err
	}
	var all []registry.Layer
	for n, l := range c.Layers {
		all = append(all, registry.Layer{Digest: l.Digest, DiffID: l.DiffID, MediaType: m.Layers[n].MediaType, Bytes: l.Bytes, From: c.Repositories})
	}
	return all, nil
}

// BlobPath is where a layer is as it was pulled, by its SHA-256 in hex.
func (s *Cache) BlobPath(sum string) (string, error) {
	if !reference.IsDigest("sha256:" + sum) {
		return "", fmt.Errorf("%q is not a SHA-256 in hex", sum)
	}
	path := s.store.Path("oci", sum)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("layer %s: %w", sum, ErrNotPulled)
	}
	return path, nil
}

// Labels are those of an image.
func (s *Cache) Labels(digest string) (map[string]string, error) {
	_, m, err := s.manifest(digest)
	if err != nil {
		return nil, err
	}
	_, sum, err := oci.BlobFile(m.Config.Digest)
	if err != nil {
		return nil, err
	}
	text, err := readLimited(s.store.Path("oci", sum))
	if err != nil {
		return nil, err
	}
	config, err := oci.ParseConfig(text, len(m.Layers))
	return config.Config.Labels, err
}

// OpenBlob opens a layer as it was pulled, by its SHA-256 in hex.
func (s *Cache) OpenBlob(sum string) (*os.File, error) { return os.Open(s.store.Path("oci", sum)) }
