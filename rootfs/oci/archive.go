package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"strings"

	"cupola/rootfs/unpack"
)

// Image is what an archive says about the one image in it.
type Image struct {
	Layers []Layer
	Labels map[string]string
	Names  []string // the image's names where the archive was made
}

// Layer is a tar, mostly compressed, in the archive. Its SHA-256 in hex must be one of Digests.
type Layer struct {
	File    string
	Digests []string
}

// dockerManifest is an element of a docker-archive's manifest.json.
type dockerManifest struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// Image reads what the archive says about its image. A docker-archive's own manifest goes first: newer ones are OCI layouts as
// well, whose index may name platforms that were not saved.
func (b *Archive) Image(ctx context.Context) (Image, error) {
	if !b.has("manifest.json") && !b.has("index.json") {
		return Image{}, errors.New("not an OCI image layout, docker-archive or tar of a root file system")
	}
	if b.has("manifest.json") {
		return readDockerArchive(b)
	}
	var index Manifest
	if err := readDocument(b, "index.json", &index); err != nil {
		return Image{}, err
	}
	return readIndex(ctx, b, index, 0)
}

func readDocument(b *Archive, name string, v any) error {
	r, err := b.Open(name)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxDocument))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("parse %s: %v", name, err)
	}
	return nil
}

func readDockerArchive(b *Archive) (Image, error) {
	var all []dockerManifest
	if err := readDocument(b, "manifest.json", &all); err != nil {
		return Image{}, err
	}
	if len(all) != 1 {
		return Image{}, fmt.Errorf("archive holds %d images; save one alone", len(all))
	}
	m := all[0]
	var cfg Config
	if err := readDocument(b, m.Config, &cfg); err != nil {
		return Image{}, err
	}
	if err := cfg.runs(); err != nil {
		return Image{}, err
	}
	if len(cfg.RootFS.DiffIDs) != len(m.Layers) {
		return Image{}, fmt.Errorf("image has %d layers but %d digests", len(m.Layers), len(cfg.RootFS.DiffIDs))
	}
	img := Image{Labels: cfg.Config.Labels, Names: m.RepoTags}
	for i, file := range m.Layers {
		// The digest of an uncompressed layer is its diff ID; a compressed layer has its digest in its name.
		named, _, _ := strings.Cut(path.Base(file), ".")
		img.Layers = append(img.Layers, Layer{File: file, Digests: []string{strings.TrimPrefix(cfg.RootFS.DiffIDs[i], "sha256:"), named}})
	}
	return img, nil
}

func readIndex(ctx context.Context, b *Archive, index Manifest, depth int) (Image, error) {
	fit := Fitting(index.Manifests)
	if len(fit) != 1 {
		return Image{}, fmt.Errorf("layout holds %d images for linux/%s; want one", len(fit), runtime.GOARCH)
	}
	d := fit[0]
	var m Manifest
	if err := readBlob(ctx, b, d, &m); err != nil {
		return Image{}, err
	}
	var img Image
	var err error
	switch {
	case len(m.Manifests) > 0 && depth < MaxNesting:
		img, err = readIndex(ctx, b, m, depth+1)
	case len(m.Layers) > 0:
		img, err = readManifest(ctx, b, m)
	default:
		err = fmt.Errorf("manifest %s has no layers", d.Digest)
	}
	for _, key := range []string{"org.opencontainers.image.ref.name", "io.containerd.image.name"} {
		if name := d.Annotations[key]; name != "" {
			img.Names = append(img.Names, name)
		}
	}
	return img, err
}

func readManifest(ctx context.Context, b *Archive, m Manifest) (Image, error) {
	var cfg Config
	if err := readBlob(ctx, b, m.Config, &cfg); err != nil {
		return Image{}, err
	}
	if err := cfg.runs(); err != nil {
		return Image{}, err
	}
	img := Image{Labels: cfg.Config.Labels}
	for _, l := range m.Layers {
		file, digest, err := BlobFile(l.Digest)
		if err != nil {
			return Image{}, err
		}
		img.Layers = append(img.Layers, Layer{File: file, Digests: []string{digest}})
	}
	return img, nil
}

func readBlob(ctx context.Context, b *Archive, d Descriptor, v any) error {
	file, digest, err := BlobFile(d.Digest)
	if err != nil {
		return err
	}
	r, err := b.Open(file)
	if err != nil {
		return err
	}
	if err := unpack.Verify(ctx, r, digest); err != nil {
		return err
	}
	return readDocument(b, file, v)
}
