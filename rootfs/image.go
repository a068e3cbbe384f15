package rootfs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"runtime"
	"strings"

	"cupola/rootfs/reference"
)

// image is what an OCI layout or docker-archive says of the one image in it.
type image struct {
	layers []imageLayer
	labels map[string]string
	names  []string // what it was called where it came from
}

// imageLayer is a tar, mostly compressed, in the bundle. Its sha256 must be one of digests.
type imageLayer struct {
	file    string
	digests []string
}

// The fields used of the OCI image specification's documents, which docker's own share.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int64             `json:"size"`
		Annotations map[string]string `json:"annotations"`
		Platform    *struct {
			Architecture string `json:"architecture"`
			OS           string `json:"os"`
		} `json:"platform"`
	}
	manifest struct {
		MediaType string       `json:"mediaType"`
		Manifests []descriptor `json:"manifests"` // of an index
		Config    descriptor   `json:"config"`
		Layers    []descriptor `json:"layers"`
	}
	imageConfig struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
		Config       struct {
			User         string              `json:"User"`
			Env          []string            `json:"Env"`
			Entrypoint   []string            `json:"Entrypoint"`
			Cmd          []string            `json:"Cmd"`
			WorkingDir   string              `json:"WorkingDir"`
			ExposedPorts map[string]struct{} `json:"ExposedPorts"`
			Labels       map[string]string   `json:"Labels"`
		} `json:"config"`
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	// dockerManifest is an element of a docker-archive's manifest.json.
	dockerManifest struct {
		Config   string   `json:"Config"`
		RepoTags []string `json:"RepoTags"`
		Layers   []string `json:"Layers"`
	}
)

const (
	maxDocument = 8 << 20 // of a manifest or config
	maxNesting  = 4       // indexes within indexes
)

// readImage finds the image in a bundle. A docker-archive's own manifest goes first: newer ones are OCI layouts as well,
// whose index may name platforms that were not saved.
func readImage(ctx context.Context, b bundle) (image, error) {
	if b.has("manifest.json") {
		return readDockerArchive(b)
	}
	var index manifest
	if err := readDocument(b, "index.json", &index); err != nil {
		return image{}, err
	}
	return readIndex(ctx, b, index, 0)
}

func readDocument(b bundle, name string, v any) error {
	r, err := b.open(name)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxDocument))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("parse %s: %v", name, err)
	}
	return nil
}

func readDockerArchive(b bundle) (image, error) {
	var all []dockerManifest
	if err := readDocument(b, "manifest.json", &all); err != nil {
		return image{}, err
	}
	if len(all) != 1 {
		return image{}, fmt.Errorf("archive holds %d images; save one alone", len(all))
	}
	m := all[0]
	var cfg imageConfig
	if err := readDocument(b, m.Config, &cfg); err != nil {
		return image{}, err
	}
	if err := cfg.runs(); err != nil {
		return image{}, err
	}
	if len(cfg.RootFS.DiffIDs) != len(m.Layers) {
		return image{}, fmt.Errorf("image has %d layers but %d digests", len(m.Layers), len(cfg.RootFS.DiffIDs))
	}
	img := image{labels: cfg.Config.Labels, names: m.RepoTags}
	for i, file := range m.Layers {
		// A layer as it is has its diff id for digest; a compressed one bears its own in its name.
		named, _, _ := strings.Cut(path.Base(file), ".")
		img.layers = append(img.layers, imageLayer{file: file, digests: []string{strings.TrimPrefix(cfg.RootFS.DiffIDs[i], "sha256:"), named}})
	}
	return img, nil
}

func readIndex(ctx context.Context, b bundle, index manifest, depth int) (image, error) {
	fit := fitting(index.Manifests)
	if len(fit) != 1 {
		return image{}, fmt.Errorf("layout holds %d images for linux/%s; want one", len(fit), runtime.GOARCH)
	}
	d := fit[0]
	var m manifest
	if err := readBlob(ctx, b, d, &m); err != nil {
		return image{}, err
	}
	var img image
	var err error
	switch {
	case len(m.Manifests) > 0 && depth < maxNesting:
		img, err = readIndex(ctx, b, m, depth+1)
	case len(m.Layers) > 0:
		img, err = readManifest(ctx, b, m)
	default:
		err = fmt.Errorf("manifest %s has no layers", d.Digest)
	}
	for _, key := range []string{"org.opencontainers.image.ref.name", "io.containerd.image.name"} {
		if name := d.Annotations[key]; name != "" {
			img.names = append(img.names, name)
		}
	}
	return img, err
}

// fitting drops images of other platforms and what is no image: attestations name the platform unknown/unknown.
func fitting(all []descriptor) []descriptor {
	var fit []descriptor
	for _, d := range all {
		if p := d.Platform; p == nil || p.OS == "linux" && p.Architecture == runtime.GOARCH {
			fit = append(fit, d)
		}
	}
	return fit
}

func readManifest(ctx context.Context, b bundle, m manifest) (image, error) {
	var cfg imageConfig
	if err := readBlob(ctx, b, m.Config, &cfg); err != nil {
		return image{}, err
	}
	if err := cfg.runs(); err != nil {
		return image{}, err
	}
	img := image{labels: cfg.Config.Labels}
	for _, l := range m.Layers {
		file, digest, err := blobFile(l.Digest)
		if err != nil {
			return image{}, err
		}
		img.layers = append(img.layers, imageLayer{file: file, digests: []string{digest}})
	}
	return img, nil
}

func readBlob(ctx context.Context, b bundle, d descriptor, v any) error {
	file, digest, err := blobFile(d.Digest)
	if err != nil {
		return err
	}
	r, err := b.open(file)
	if err != nil {
		return err
	}
	if err := verify(ctx, r, digest); err != nil {
		return err
	}
	return readDocument(b, file, v)
}

// runs refuses an image that says it is for another machine.
func (c imageConfig) runs() error {
	os, arch := cmp.Or(c.OS, "linux"), cmp.Or(c.Architecture, runtime.GOARCH)
	if os != "linux" || arch != runtime.GOARCH {
		return fmt.Errorf("it is for %s/%s; this machine is linux/%s", os, arch, runtime.GOARCH)
	}
	return nil
}

// blobFile is where a layout keeps the blob of a digest.
func blobFile(digest string) (file, sum string, err error) {
	sum = strings.TrimPrefix(digest, "sha256:")
	if !reference.IsDigest(digest) {
		return "", "", fmt.Errorf("digest %q is no sha256", digest)
	}
	return "blobs/sha256/" + sum, sum, nil
}
