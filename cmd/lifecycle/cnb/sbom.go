package cnb

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// keepSBOM copies the SBOM files of a buildpack to where the droplet has those of all:
// layers/sbom/{launch,build,cache}/<buildpack>/[<layer>/]sbom.<format> (lifecycle:
// Builder.copySBOMFiles).
func (s *staging) keepSBOM(d *descriptor, layers []layer) error {
	types := map[string]layerTypes{"launch": {Launch: true}, "build": {Build: true}}
	whole := map[string]bool{"launch": true, "build": true}
	for _, l := range layers {
		types[l.name] = l.layerTypes
	}
	return eachIn(s.layersOf(d), func(path string, isDir bool) error {
		layer, ending, ok := sbomFile(filepath.Base(path))
		if isDir || !ok {
			return nil
		}
		if !slices.ContainsFunc(d.Buildpack.SBOMFormats, func(format string) bool { return mediaType(format) == sbomTypes[ending] }) {
			return fmt.Errorf("buildpack %s wrote the SBOM file %s, and its sbom-formats do not have %s", d, filepath.Base(path), sbomTypes[ending])
		}
		t, name := types[layer], layer
		if whole[layer] {
			name = ""
		}
		for kind, has := range map[string]bool{"launch": t.Launch, "build": t.Build, "cache": t.Cache} {
			if !has {
				continue
			}
			if err := copyFile(path, filepath.Join(s.layers, "sbom", kind, escape(d.Buildpack.ID), name, "sbom."+ending)); err != nil {
				return err
			}
		}
		return nil
	})
}

// mediaType is a media type without its parameters.
func mediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.TrimSpace(s)
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
