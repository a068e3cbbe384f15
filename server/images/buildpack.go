package images

import (
	"encoding/json"
	"fmt"
	"strings"

	"cupola/rootfs/image"
	"cupola/server/desire"
	"cupola/server/reconcile"
)

// The labels of images that pack and lifecycle write (buildpacks/spec: distribution.md,
// platform.md).
const (
	buildpackageLabel = "io.buildpacks.buildpackage.metadata"
	buildLabel        = "io.buildpacks.build.metadata"
)

// buildpack is the buildpack of an image, as ID@VERSION, and its layers.
func (i Images) buildpack(img image.Image) (id string, layers []string, err error) {
	labels, err := i.Roots.Images.Labels(img.Digest)
	if err != nil {
		return "", nil, err
	}
	var m struct {
		ID      string `json:"id"`
		Version string `json:"version"`
	}
	if err := json.Unmarshal([]byte(labels[buildpackageLabel]), &m); err != nil || m.ID == "" {
		return "", nil, reconcile.ErrNoBuildpack
	}
	for _, l := range img.Layers {
		layers = append(layers, strings.TrimPrefix(l.Digest, "sha256:"))
	}
	if m.Version != "" {
		m.ID += "@" + m.Version
	}
	return m.ID, layers, nil
}

// processes are the process types of an app's image that Cloud Native Buildpacks built;
// nil for another image.
func (i Images) processes(digest string) ([]desire.ImageProcess, error) {
	labels, err := i.Roots.Images.Labels(digest)
	if err != nil || labels[buildLabel] == "" {
		return nil, err
	}
	var m struct {
		Processes []desire.ImageProcess `json:"processes"`
	}
	if err := json.Unmarshal([]byte(labels[buildLabel]), &m); err != nil {
		return nil, fmt.Errorf("its label %s cannot be read: %w", buildLabel, err)
	}
	return m.Processes, nil
}
