package release

import (
	"fmt"
	"strings"

	"cupola/runtime/pattern"
	"cupola/server/bosh/tree"
)

// ManifestFile is the name of a release's manifest in its tarball.
const ManifestFile = "release.MF"

// MaxManifest bounds a release's manifest, in bytes.
const MaxManifest = 4 << 20

// Manifest is the manifest of a release's tarball.
type Manifest struct {
	Name        string     `yaml:"name"`
	Version     string     `yaml:"version"`
	CommitHash  string     `yaml:"commit_hash"`
	Uncommitted bool       `yaml:"uncommitted_changes"`
	Jobs        []Archived `yaml:"jobs"`
	Packages    []Archived `yaml:"packages,omitempty"`
	Compiled    []Archived `yaml:"compiled_packages,omitempty"` // BOSH takes a release that has the key for a compiled one
}

// Archived is a job or package of a release, whose archive lies in the tarball.
type Archived struct {
	Name         string   `yaml:"name"`
	Version      string   `yaml:"version"`
	Fingerprint  string   `yaml:"fingerprint"`
	Digest       string   `yaml:"sha1"` // as ParseDigests reads it
	Dependencies []string `yaml:"dependencies,omitempty"`
	Stemcell     string   `yaml:"stemcell,omitempty"` // of a compiled package: os/version
}

var versionRule = pattern.Lazy(`^[A-Za-z0-9_.+-]{1,100}$`)

// ParseManifest reads the manifest of a release.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > MaxManifest {
		return nil, fmt.Errorf("%s has more than %d bytes", ManifestFile, MaxManifest)
	}
	root, err := tree.LoadBOSH(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	m := &Manifest{}
	if err := root.Decode(m); err != nil {
		return nil, fmt.Errorf("%s: %s", ManifestFile, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	return m, nil
}

func (m *Manifest) check() error {
	if err := checkID(m.Name, m.Version); err != nil {
		return err
	}
	for _, of := range []struct {
		kind string
		all  []Archived
	}{{"job", m.Jobs}, {"package", m.Packages}, {"compiled package", m.Compiled}} {
		seen := map[string]bool{}
		for _, a := range of.all {
			if err := a.check(of.kind, seen); err != nil {
				return err
			}
		}
	}
	if _, err := Ordered(m.Packages); err != nil {
		return err
	}
	_, err := Ordered(m.Compiled)
	return err
}

// checkID refuses names and versions that a release cannot have.
func checkID(name, version string) error {
	if !nameRule().MatchString(name) {
		return fmt.Errorf("invalid release name %.100q: use letters, digits, '_', '.' and '-'", name)
	}
	if !versionRule().MatchString(version) {
		return fmt.Errorf("invalid release version %.100q: use letters, digits, '_', '.', '+' and '-'", version)
	}
	return nil
}

func (a Archived) check(kind string, seen map[string]bool) error {
	switch {
	case !nameRule().MatchString(a.Name):
		return fmt.Errorf("invalid name of a %s %.100q: use letters, digits, '_', '.' and '-'", kind, a.Name)
	case seen[a.Name]:
		return fmt.Errorf("%s '%s' is there twice", kind, a.Name)
	case a.Fingerprint == "" && a.Version == "":
		return fmt.Errorf("%s '%s' has no fingerprint", kind, a.Name)
	}
	seen[a.Name] = true
	want, err := ParseDigests(a.Digest)
	if err == nil && len(want) == 0 {
		err = fmt.Errorf("it has no sha1")
	}
	if err != nil {
		return fmt.Errorf("%s '%s': %w", kind, a.Name, err)
	}
	return nil
}

// Ordered returns packages in an order in which each comes after those that it
// depends on.
func Ordered(packages []Archived) ([]Archived, error) {
	byName := map[string]Archived{}
	for _, p := range packages {
		byName[p.Name] = p
	}
	var all []Archived
	done, path := map[string]bool{}, []string{}
	var visit func(p Archived) error
	visit = func(p Archived) error {
		if done[p.Name] {
			return nil
		}
		for _, above := range path {
			if above == p.Name {
				return fmt.Errorf("package '%s' depends on itself: %s", p.Name, strings.Join(append(path, p.Name), " -> "))
			}
		}
		path = append(path, p.Name)
		for _, name := range p.Dependencies {
			on, ok := byName[name]
			if !ok {
				return fmt.Errorf("package '%s' depends on missing package '%s'", p.Name, name)
			}
			if err := visit(on); err != nil {
				return err
			}
		}
		path = path[:len(path)-1]
		done[p.Name], all = true, append(all, p)
		return nil
	}
	for _, p := range packages {
		if err := visit(p); err != nil {
			return nil, err
		}
	}
	return all, nil
}
