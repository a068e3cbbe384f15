package image

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cupola/rootfs/oci"
	"cupola/rootfs/reference"
	"cupola/rootfs/tree"
)

// Find finds an image in the store by its digest, a reference it was pulled by, or the name of a stack that is made of
// it. A tag that meant several over time means the one used last. Else the error is ErrNotPulled.
func (s *Cache) Find(name string) (Info, error) {
	if r, err := reference.Parse(name); err == nil {
		name = r.String()
		if r.Digest != "" {
			name = r.Digest
		}
	}
	all, err := s.List()
	if err != nil {
		return Info{}, err
	}
	for _, i := range all {
		if i.Digest == name || slices.Contains(i.References, name) || slices.Contains(i.Stacks, strings.TrimPrefix(name, string(reference.SchemePreloaded)+":")) {
			return i, nil
		}
	}
	return Info{}, fmt.Errorf("%s: %w", name, ErrNotPulled)
}

// Export writes an image, named as for Find, into the new directory dir as an OCI image layout: the platform's own, with
// the digests it was pulled with. progress, which may be nil, is called with bytes written and to write.
func (s *Cache) Export(ctx context.Context, name, dir string, progress func(done, total int64)) (Image, error) {
	info, err := s.Find(name)
	if err != nil {
		return Image{}, err
	}
	c, err := s.record(info.Digest)
	if err != nil {
		return Image{}, err
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	var names []string
	for _, sum := range c.Blobs {
		names = append(names, blobName(sum))
	}
	defer s.store.HoldNames(names...)()
	if _, err := os.Lstat(dir); err == nil {
		return Image{}, fmt.Errorf("export to %s: it exists already", dir)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".export-")
	if err != nil {
		return Image{}, err
	}
	err = s.writeLayout(ctx, c, info.References, tmp, progress)
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return Image{}, errors.Join(fmt.Errorf("export %s: %w", name, err), os.RemoveAll(tmp))
	}
	return c.Image, nil
}

// writeLayout fills a directory. The first of an image's blobs is its manifest, which is all that the index names. An index of
// several platforms stays out, since the images of the other platforms are not in the cache.
func (s *Cache) writeLayout(ctx context.Context, c record, references []string, dir string, progress func(done, total int64)) error {
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return err
	}
	text, err := readLimited(s.store.Path("oci", c.Blobs[0]))
	if err != nil {
		return err
	}
	m, err := oci.ParseManifest(text)
	if err != nil {
		return err
	}
	index := map[string]any{"schemaVersion": 2, "mediaType": oci.IndexType, "manifests": []any{map[string]any{
		"mediaType": cmp.Or(m.MediaType, oci.ManifestType), "digest": "sha256:" + c.Blobs[0], "size": len(text),
		"annotations": map[string]string{"org.opencontainers.image.ref.name": strings.TrimPrefix(references[0], "docker://")},
	}}}
	blobs := append([]oci.Descriptor{{Digest: "sha256:" + c.Blobs[0], Size: int64(len(text))}, m.Config}, m.Layers...)
	var total, done int64
	for _, d := range blobs {
		total += d.Size
	}
	for _, d := range blobs {
		n, err := s.copyBlob(ctx, d.Digest, dir)
		if err != nil {
			return err
		}
		done += n
		progress(done, total)
	}
	indexText, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "index.json"), indexText, 0o644),
		os.WriteFile(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644), os.Chmod(dir, 0o755), tree.Sync(dir))
}

func (s *Cache) copyBlob(ctx context.Context, digest, dir string) (int64, error) {
	file, sum, err := oci.BlobFile(digest)
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	from, err := os.Open(s.store.Path("oci", sum))
	if err != nil {
		return 0, err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(to, from)
	return n, errors.Join(err, to.Close())
}
