package create

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/release"
	"cupola/server/bosh/tree"
)

// Directory is a release's directory that was read.
type Directory struct {
	Name     string
	jobs     []*part
	packages []*part
}

// part is a job or a package.
type part struct {
	kind        string
	name        string
	fingerprint string
	files       []file
	on          []string // the packages that a package depends on
}

// file is a file of a part.
type file struct {
	path     string // on this machine
	at       string // in the part
	modeless bool   // its mode is not part of the fingerprint
	follow   bool   // a symbolic link stands for what it leads to
}

// Name returns the name of the release in a directory.
func Name(dir string) (string, error) {
	var final struct {
		Name      string `yaml:"name"`
		FinalName string `yaml:"final_name"`
	}
	err := readYAML(filepath.Join(dir, "config", "final.yml"), &final)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is not the directory of a release: it has no config/final.yml", dir)
	}
	return cmp.Or(final.Name, final.FinalName, filepath.Base(dir)), err
}

// Open reads a release's directory, and fingerprints its jobs and packages.
func Open(dir string) (*Directory, error) {
	name, err := Name(dir)
	if err != nil {
		return nil, err
	}
	d := &Directory{Name: name}
	sources, err := listSources(dir)
	if err != nil {
		return nil, err
	}
	if d.packages, err = parts(dir, "packages", func(at string) (*part, error) { return readPackage(at, sources) }); err != nil {
		return nil, err
	}
	if d.jobs, err = parts(dir, "jobs", readJob); err != nil {
		return nil, err
	}
	if len(d.jobs) == 0 {
		return nil, fmt.Errorf("%s is not the directory of a release: it has no jobs", dir)
	}
	return d, nil
}

func readYAML(path string, out any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	root, err := tree.LoadBOSH(text)
	if err == nil && root.Kind == yaml.MappingNode {
		err = root.Decode(out)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// parts reads the jobs or packages of a release.
func parts(dir, kind string, read func(string) (*part, error)) (all []*part, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, kind))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		p, err := read(filepath.Join(dir, kind, e.Name()))
		if err != nil {
			return nil, err
		}
		p.kind = kind
		if p.name != e.Name() {
			return nil, fmt.Errorf("%s: the directory is called %q, and the spec says %q", kind, e.Name(), p.name)
		}
		if err := p.sign(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// readJob reads the directory of a job.
func readJob(dir string) (*part, error) {
	spec := filepath.Join(dir, "spec")
	text, err := os.ReadFile(spec)
	if err != nil {
		return nil, err
	}
	var named struct {
		Name string `yaml:"name"`
	}
	if err := readYAML(spec, &named); err != nil {
		return nil, err
	}
	job, err := release.ParseSpec(named.Name, text)
	if err != nil {
		return nil, err
	}
	p := &part{name: named.Name, files: []file{{path: spec, at: "job.MF", follow: true}}}
	for _, name := range []string{"monit", "properties_schema.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			p.files = append(p.files, file{path: filepath.Join(dir, name), at: name, follow: true})
		}
	}
	for _, t := range job.Templates {
		at := "templates/" + t.Source
		p.files = append(p.files, file{path: filepath.Join(dir, filepath.FromSlash(at)), at: at, follow: true})
	}
	slices.SortFunc(p.files, byPlace)
	p.files = slices.CompactFunc(p.files, func(a, b file) bool { return a.at == b.at }) // a template with two destinations
	return p, nil
}

// packageSpec is the spec of a package.
type packageSpec struct {
	Name         string   `yaml:"name"`
	Dependencies []string `yaml:"dependencies"`
	Files        []string `yaml:"files"`
	Excluded     []string `yaml:"excluded_files"`
}

// readPackage reads the directory of a package.
func readPackage(dir string, all *sources) (*part, error) {
	if _, err := os.Stat(filepath.Join(dir, "spec.lock")); err == nil {
		return nil, fmt.Errorf("%s has a spec.lock: the source of the package is in the release's blobstore; make a tarball with 'bosh create-release --force --tarball', and upload that", dir)
	}
	var spec packageSpec
	if err := readYAML(filepath.Join(dir, "spec"), &spec); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "pre_packaging")); err == nil {
		return nil, fmt.Errorf("package '%s' has a pre_packaging script, which is not run: make a tarball with 'bosh create-release --force --tarball', and upload that", spec.Name)
	}
	p := &part{name: spec.Name, on: spec.Dependencies, files: []file{{path: filepath.Join(dir, "packaging"), at: "packaging", modeless: true}}}
	if _, err := os.Stat(p.files[0].path); err != nil {
		return nil, fmt.Errorf("expected to find '%s' for package '%s'", p.files[0].path, spec.Name)
	}
	chosen, err := all.choose(spec.Files, spec.Excluded)
	if err != nil {
		return nil, fmt.Errorf("package '%s': %w", spec.Name, err)
	}
	for _, f := range chosen {
		if f.at == "packaging" || f.at == "pre_packaging" {
			return nil, fmt.Errorf("package '%s': a file called %q must not be among its files", spec.Name, f.at)
		}
	}
	p.files = append(p.files, chosen...)
	slices.SortFunc(p.files, byPlace)
	return p, nil
}
