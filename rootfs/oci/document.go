// Package oci reads the documents and archives of container images: manifests, indexes and configs of registries and OCI
// layouts, and what docker save writes. It trusts none of them.
package oci

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"cupola/rootfs/reference"
)

// The fields used of the OCI image specification's documents, which docker's own share.
type (
	// Descriptor names a document or a blob.
	Descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int64             `json:"size"`
		Annotations map[string]string `json:"annotations"`
		Platform    *struct {
			Architecture string `json:"architecture"`
			OS           string `json:"os"`
		} `json:"platform"`
	}
	// Manifest is the document of an image on one platform, or an index of several.
	Manifest struct {
		MediaType string       `json:"mediaType"`
		Manifests []Descriptor `json:"manifests"` // of an index
		Config    Descriptor   `json:"config"`
		Layers    []Descriptor `json:"layers"`
	}
	// Config is the document that says how containers of an image run.
	Config struct {
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
)

// Limits of what an image may ask for.
const (
	MaxDocument = 8 << 20 // bytes of a manifest or config
	MaxNesting  = 4       // indexes within indexes
	MaxLayers   = 127     // as in docker
)

// Media types of documents.
const (
	IndexType    = "application/vnd.oci.image.index.v1+json"
	ManifestType = "application/vnd.oci.image.manifest.v1+json"
)

// DocumentTypes are the media types of documents that describe an image, docker's and OCI's.
var DocumentTypes = []string{
	IndexType, ManifestType,
	"application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.docker.distribution.manifest.v2+json",
}

// ParseManifest reads an index or a manifest. One that could be taken for both means something else to others who read it
// (CVE-2021-41190), so it is refused.
func ParseManifest(text []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("it does not parse: %v", err)
	}
	isIndex, isImage := len(m.Manifests) > 0, len(m.Layers) > 0 || m.Config.Digest != ""
	saysIndex := strings.HasSuffix(m.MediaType, ".index.v1+json") || strings.HasSuffix(m.MediaType, ".list.v2+json")
	switch {
	case isIndex && isImage, m.MediaType != "" && (isIndex || isImage) && saysIndex != isIndex:
		return m, errors.New("it is both an index and an image")
	case m.MediaType != "" && !slices.Contains(DocumentTypes, m.MediaType):
		return m, fmt.Errorf("it is of the type %q, which is not a container image", m.MediaType)
	case isIndex:
		return m, nil
	case len(m.Layers) == 0:
		return m, errors.New("it has no layers")
	case len(m.Layers) > MaxLayers:
		return m, fmt.Errorf("it has %d layers; at most %d can be mounted", len(m.Layers), MaxLayers)
	}
	for _, l := range m.Layers {
		if strings.HasSuffix(l.MediaType, "+encrypted") {
			return m, errors.New("its layers are encrypted")
		}
		if _, _, err := BlobFile(l.Digest); err != nil {
			return m, err
		}
	}
	return m, nil
}

// Choose finds this machine's platform in an index. What says no platform is taken when it is alone; attestations say
// unknown.
func Choose(all []Descriptor) (Descriptor, error) {
	var names []string
	for _, d := range all {
		if d.Platform == nil {
			continue
		}
		if d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH {
			return d, nil
		}
		if d.Platform.OS != "unknown" {
			names = append(names, d.Platform.OS+"/"+d.Platform.Architecture)
		}
	}
	if len(all) == 1 && all[0].Platform == nil {
		return all[0], nil
	}
	return Descriptor{}, fmt.Errorf("there is no image for linux/%s, only for %s", runtime.GOARCH, cmp.Or(strings.Join(names, ", "), "none"))
}

// Fitting drops images of other platforms and what is not an image: attestations name the platform unknown/unknown.
func Fitting(all []Descriptor) []Descriptor {
	var fit []Descriptor
	for _, d := range all {
		if p := d.Platform; p == nil || p.OS == "linux" && p.Architecture == runtime.GOARCH {
			fit = append(fit, d)
		}
	}
	return fit
}

// ParseConfig reads the config of an image with so many layers.
func ParseConfig(text []byte, layers int) (c Config, err error) {
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("its config does not parse: %v", err)
	}
	if len(c.RootFS.DiffIDs) != layers {
		return c, fmt.Errorf("it has %d layers but %d diff ids; is it a container image?", layers, len(c.RootFS.DiffIDs))
	}
	for _, id := range c.RootFS.DiffIDs {
		if _, _, err := BlobFile(id); err != nil {
			return c, err
		}
	}
	return c, c.runs()
}

// runs refuses an image that says it is for another machine.
func (c Config) runs() error {
	os, arch := cmp.Or(c.OS, "linux"), cmp.Or(c.Architecture, runtime.GOARCH)
	if os != "linux" || arch != runtime.GOARCH {
		return fmt.Errorf("it is for %s/%s; this machine is linux/%s", os, arch, runtime.GOARCH)
	}
	return nil
}

// BlobFile returns where a layout keeps the blob of a digest, and the SHA-256 in hex.
func BlobFile(digest string) (file, sum string, err error) {
	sum = strings.TrimPrefix(digest, "sha256:")
	if !reference.IsDigest(digest) {
		return "", "", fmt.Errorf("digest %q is not a sha256 digest", digest)
	}
	return "blobs/sha256/" + sum, sum, nil
}

// Digest is the digest of a document.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
