package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
)

// Select returns the images that want wants, and the names of their blobs for a lease.
func (s *Cache) Select(want func(digest string) bool) (images []Image, names []string, err error) {
	all, err := s.records()
	if err != nil {
		return nil, nil, err
	}
	for _, c := range all {
		if !want(c.Digest) {
			continue
		}
		images = append(images, c.Image)
		for _, sum := range c.Blobs {
			names = append(names, blobName(sum))
		}
	}
	return images, names, nil
}

// Link links the files of an image into two directories: its record as <sha256>.json, and its blobs by their SHA-256. Both must
// be on the file system of the store.
func (s *Cache) Link(digest, records, blobs string) error {
	c, err := s.record(digest)
	if err != nil {
		return fmt.Errorf("image %s: %w", digest, err)
	}
	record := s.recordPath(digest)
	if err := linkOnce(record, filepath.Join(records, filepath.Base(record))); err != nil {
		return err
	}
	for _, sum := range c.Blobs {
		if err := linkOnce(s.store.Path("oci", sum), filepath.Join(blobs, sum)); err != nil {
			return fmt.Errorf("image %s: %w", c.Reference, err)
		}
	}
	return nil
}

// LinkFallbacks links the file that says where else images can be pulled from, if there is one.
func (s *Cache) LinkFallbacks(to string) error {
	err := linkOnce(s.publishedPath(), to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// linkOnce links a file, which images may share.
func linkOnce(from, to string) error {
	if err := os.Link(from, to); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// SavedBlobs returns an image's digest and the SHA-256 of the blobs that its record needs.
func SavedBlobs(text []byte) (digest string, blobs []string, err error) {
	var c record
	if err := json.Unmarshal(text, &c); err != nil {
		return "", nil, fmt.Errorf("record of an image: %v", err)
	}
	return c.Digest, c.Blobs, nil
}

// Restore makes an image whole again from its record and its blobs, which are in the store under their SHA-256: it is unpacked as
// when it was pulled.
func (s *Cache) Restore(ctx context.Context, text []byte) error {
	var was record
	if err := json.Unmarshal(text, &was); err != nil {
		return fmt.Errorf("record of an image: %v", err)
	}
	ref, err := reference.Parse(was.Reference)
	if err != nil {
		return err
	}
	if !reference.IsDigest(was.Digest) {
		return fmt.Errorf("image %s has the digest %q", ref, was.Digest)
	}
	defer s.locks.Lock("image " + was.Digest)()
	p := newPull(s, ref, PullOptions{})
	p.digest, p.connects = was.Digest, []func(context.Context) (origin, error){func(context.Context) (origin, error) { return nowhere{}, nil }}
	defer p.release()
	if err := p.describe(ctx); err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	p.hold(p.names()...)
	c, err := p.layers(ctx)
	if err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	c.Reference, c.Origins, c.Repositories, c.Pulled, c.Compat = was.Reference, was.Origins, was.Repositories, was.Pulled, was.Compat
	return p.commit(c)
}

// nowhere is the origin of an image whose files are all in the store, or lost.
type nowhere struct{}

// Manifest finds nothing.
func (nowhere) Manifest(_ context.Context, digest string) ([]byte, error) {
	return nil, fmt.Errorf("%s is missing: %w", digest, registry.ErrMissing)
}

// Blob finds nothing.
func (nowhere) Blob(_ context.Context, digest string, _ int64) (io.ReadCloser, int64, error) {
	return nil, 0, fmt.Errorf("%s is missing: %w", digest, registry.ErrMissing)
}
