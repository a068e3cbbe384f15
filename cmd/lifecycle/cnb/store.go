package cnb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// buildpacksDir is where a buildpack image keeps its buildpacks, as ID/VERSION
// (buildpacks/spec: distribution.md).
const buildpacksDir = "cnb/buildpacks"

// buildpackageLabel says which of them is the image's own.
const buildpackageLabel = "io.buildpacks.buildpackage.metadata"

// store has all buildpacks of a staging.
type store struct {
	all   map[string]*descriptor // by ID@VERSION
	mains []*descriptor          // that the user named, in order
}

// openStore reads the sources of a staging: each is a directory with what was
// brought for one buildpack that the user named, and, after "=", the buildpack in it.
func openStore(sources []string) (*store, error) {
	s := &store{all: map[string]*descriptor{}}
	for _, source := range sources {
		dir, main, _ := strings.Cut(source, "=")
		if err := s.open(dir, main); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *store) open(dir, main string) error {
	if isFile(filepath.Join(dir, "oci-layout")) {
		var err error
		if main, err = unpackLayout(dir); err != nil {
			return fmt.Errorf("buildpack package: %w", err)
		}
	}
	if isDir(filepath.Join(dir, buildpacksDir)) {
		return s.openImage(filepath.Join(dir, buildpacksDir), main)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) == 1 && entries[0].IsDir() {
		dir = filepath.Join(dir, entries[0].Name()) // archives of source hosts keep everything in one directory
	}
	d, err := readBuildpack(dir)
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("it is neither a buildpack, which has a buildpack.toml, nor a package of buildpacks")
	}
	if err != nil {
		return err
	}
	s.all[d.String()] = d
	s.mains = append(s.mains, d)
	return d.check()
}

// openImage reads the buildpacks of an image.
func (s *store) openImage(dir, main string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "buildpack.toml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		d, err := readBuildpack(filepath.Dir(file))
		if err != nil {
			return err
		}
		s.all[d.String()] = d
	}
	d := s.all[main]
	if d == nil {
		return fmt.Errorf("the package says that its buildpack is %q, which it does not have", main)
	}
	s.mains = append(s.mains, d)
	return d.check()
}

// find is the buildpack that an order names. Without a version it must be the only one
// of its ID.
func (s *store) find(e element) (*descriptor, error) {
	if d := s.all[e.String()]; d != nil {
		return d, d.check()
	}
	var found *descriptor
	for _, d := range s.all {
		if e.Version == "" && d.Buildpack.ID == e.ID {
			if found != nil {
				return nil, fmt.Errorf("an order names the buildpack %s without a version, and there are several", e)
			}
			found = d
		}
	}
	if found == nil {
		return nil, fmt.Errorf("an order names the buildpack %s, which is in none of the packages", e)
	}
	return found, found.check()
}

// order is what detection tries: all buildpacks that were named, as one group, or each alone.
func (s *store) order(autoDetect bool) []group {
	var one group
	var each []group
	for _, d := range s.mains {
		one.Group = append(one.Group, d.element())
		each = append(each, group{Group: []element{d.element()}})
	}
	if autoDetect {
		return each
	}
	return []group{one}
}
