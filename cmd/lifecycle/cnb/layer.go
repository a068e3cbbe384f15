package cnb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cupola/cmd/lifecycle/toml"
)

// layerFile is a <layer>.toml.
type layerFile struct {
	Types layerTypes `json:"types"`
}

// layerTypes say what a layer is for.
type layerTypes struct {
	Launch bool `json:"launch"`
	Build  bool `json:"build"`
	Cache  bool `json:"cache"`
}

// layer is a layer of a buildpack.
type layer struct {
	name string
	path string // of its directory, which need not be there
	layerTypes
}

// notLayers are the names of other files of a buildpack that end in .toml.
var notLayers = map[string]bool{"launch": true, "build": true, "store": true}

func (s *staging) layersOf(d *descriptor) string {
	return filepath.Join(s.layers, escape(d.Buildpack.ID))
}

// readLayers reads the layers in a buildpack's directory, by their <layer>.toml.
func readLayers(dir string) ([]layer, error) {
	var all []layer
	err := eachIn(dir, func(path string, isDir bool) error {
		name, ok := strings.CutSuffix(filepath.Base(path), ".toml")
		if isDir || !ok || notLayers[name] {
			return nil
		}
		var f layerFile
		if err := toml.ReadFile(path, &f); err != nil {
			return fmt.Errorf("metadata of a layer: %w", err)
		}
		all = append(all, layer{name: name, path: filepath.Join(dir, name), layerTypes: f.Types})
		return nil
	})
	return all, err
}

// ignoreUntyped renames layers without a type, of which nothing is used.
func ignoreUntyped(layers []layer) error {
	for _, l := range layers {
		if l.layerTypes != (layerTypes{}) {
			continue
		}
		if err := os.Rename(l.path, l.path+".ignore"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// remove removes a layer with its metadata.
func (l layer) remove() error {
	return errors.Join(os.RemoveAll(l.path), os.RemoveAll(l.path+".toml"), os.RemoveAll(l.path+".sha"))
}

// dropBuildLayers removes what is not for the launch from a buildpack's directory, as
// cnbapplifecycle does (staging.RemoveBuildOnlyLayers).
func dropBuildLayers(dir string) error {
	layers, err := readLayers(dir)
	if err != nil {
		return err
	}
	launch := map[string]bool{}
	for _, l := range layers {
		if launch[l.name] = l.Launch; !l.Launch {
			if err := l.remove(); err != nil {
				return err
			}
		}
	}
	return eachIn(dir, func(path string, isDir bool) error {
		if isDir && !launch[filepath.Base(path)] {
			return os.RemoveAll(path) // without metadata it is not a layer
		}
		return nil
	})
}
