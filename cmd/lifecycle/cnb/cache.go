package cnb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cupola/cmd/lifecycle/builder"
	"cupola/cmd/lifecycle/toml"
)

// The cache of a staging is an archive with a directory for each buildpack that took
// part: its cached layers, with their metadata and SBOM files, and its store.toml.

// restore moves what the last staging cached to where buildpacks find it. The types
// of layers are left out of their metadata, so that buildpacks must set them again
// (buildpack.md: Restoration).
func (s *staging) restore(all []*descriptor) error {
	for _, d := range all {
		from, to := filepath.Join(s.cache, escape(d.Buildpack.ID)), s.layersOf(d)
		if !isDir(from) {
			continue
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		layers, err := readLayers(from)
		if err != nil {
			return err
		}
		for _, l := range layers {
			s.say("Restoring data for %q from cache", d.Buildpack.ID+":"+l.name)
			if err := untype(filepath.Join(from, l.name+".toml")); err != nil {
				return err
			}
		}
		if err := eachIn(from, func(path string, _ bool) error { return replace(path, filepath.Join(to, filepath.Base(path))) }); err != nil {
			return err
		}
	}
	return nil
}

// untype removes the types from the metadata of a layer, and leaves the rest as it is.
func untype(file string) error {
	t, err := toml.ReadTable(file)
	if err != nil {
		return err
	}
	delete(t, "types")
	return os.WriteFile(file, toml.Encode(t), 0o644)
}

// replace moves a file or directory, which may lie on another file system.
func replace(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Rename(from, to); err == nil {
		return nil
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// writeCache packs the layers to cache.
func (s *staging) writeCache(all []*descriptor) error {
	var parts []builder.Part
	for _, d := range all {
		more, err := s.cached(d)
		if err != nil {
			return err
		}
		parts = append(parts, more...)
	}
	return builder.Pack(s.newCache, parts...)
}

// cached is what of a buildpack is kept for the next staging.
func (s *staging) cached(d *descriptor) (parts []builder.Part, err error) {
	dir := s.layersOf(d)
	name := "./" + escape(d.Buildpack.ID)
	keep := func(file string) {
		if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
			parts = append(parts, builder.Part{Path: filepath.Join(dir, file), Name: name + "/" + file})
		}
	}
	layers, err := readLayers(dir)
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		if !l.Cache {
			continue
		}
		if _, err := os.Stat(l.path); errors.Is(err, fs.ErrNotExist) {
			s.say("Warning: Failed to cache layer '%s:%s' because it has no contents", d.Buildpack.ID, l.name)
			continue
		}
		s.say("Adding cache layer '%s:%s'", d.Buildpack.ID, l.name)
		for _, file := range []string{l.name, l.name + ".toml"} {
			keep(file)
		}
		for ending := range sbomTypes {
			keep(l.name + sbomPart + ending)
		}
	}
	keep("store.toml")
	return parts, nil
}

// sbomPart separates the name of a layer from the format of its SBOM.
const sbomPart = ".sbom."

// sbomTypes are the formats of SBOM files, by how their names end.
var sbomTypes = map[string]string{
	"cdx.json":  "application/vnd.cyclonedx+json",
	"spdx.json": "application/spdx+json",
	"syft.json": "application/vnd.syft+json",
}

// sbomFile splits the name of an SBOM file.
func sbomFile(name string) (layer, ending string, ok bool) {
	layer, ending, ok = strings.Cut(name, sbomPart)
	return layer, ending, ok && sbomTypes[ending] != ""
}
