package cnb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cupola/cmd/lifecycle/toml"
)

// launchFile is a launch.toml.
type launchFile struct {
	Labels    []label       `json:"labels"`
	Processes []launchEntry `json:"processes"`
}

// launchEntry is a process of it. Direct belongs to APIs before 0.9.
type launchEntry struct {
	process
	Direct *bool `json:"direct"`
}

// buildFile is a build.toml.
type buildFile struct {
	Unmet []provide `json:"unmet"`
}

// build runs the buildpacks one after the other.
func (s *staging) build(found resolved) (metadata, error) {
	var m metadata
	if err := os.RemoveAll(filepath.Join(s.layers, "sbom")); err != nil {
		return m, err
	}
	entries := found.entries
	for _, d := range found.buildpacks {
		requires := planFor(entries, d.Buildpack.ID)
		unmet, err := s.buildOne(d, requires, &m)
		if err != nil {
			return m, fmt.Errorf("buildpack %s: %w", d, err)
		}
		entries = slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
			return slices.Contains(e.providers, d.Buildpack.ID) && !slices.Contains(unmet, e.name)
		})
		m.Buildpacks = append(m.Buildpacks, usedBy{d.Buildpack.ID, d.Buildpack.Version, d.API, d.Buildpack.Homepage})
	}
	m.list()
	return m, nil
}

// buildOne runs a buildpack and reads what it leaves. It returns the names of
// requirements that it leaves to later ones.
func (s *staging) buildOne(d *descriptor, requires []require, m *metadata) ([]string, error) {
	dir := s.layersOf(d)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := s.runBuild(d, dir, requires); err != nil {
		return nil, err
	}
	layers, err := readLayers(dir)
	if err != nil {
		return nil, err
	}
	if err := ignoreUntyped(layers); err != nil {
		return nil, err
	}
	for _, l := range layers {
		if !l.Build {
			continue
		}
		s.env.addRoot(l.path, buildDirs)
		if err := errors.Join(s.env.addDir(filepath.Join(l.path, "env")), s.env.addDir(filepath.Join(l.path, "env.build"))); err != nil {
			return nil, err
		}
	}
	if err := s.keepSBOM(d, layers); err != nil {
		return nil, err
	}
	if err := readLaunch(d, dir, m); err != nil {
		return nil, err
	}
	return readUnmet(dir, requires)
}

func (s *staging) runBuild(d *descriptor, dir string, requires []require) error {
	temporary, err := os.MkdirTemp("", escape(d.Buildpack.ID)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	file := filepath.Join(temporary, "plan.toml")
	if err := os.WriteFile(file, planText(requires), 0o644); err != nil {
		return err
	}
	for _, name := range []string{"launch.toml", "build.toml"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil { // of the last staging
			return err
		}
	}
	err = s.run(script{d, "build", []string{dir, s.platform, file}, []string{"CNB_BP_PLAN_PATH=" + file, "CNB_LAYERS_DIR=" + dir}}, s.out)
	if status := exitStatus(err); status > 0 {
		return fmt.Errorf("exit status %d", status)
	}
	return err
}

// readLaunch adds the processes and labels of a buildpack.
func readLaunch(d *descriptor, dir string, m *metadata) error {
	var f launchFile
	err := toml.ReadFile(filepath.Join(dir, "launch.toml"), &f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m.Labels = append(m.Labels, f.Labels...)
	defaults := 0
	for _, e := range f.Processes {
		p := e.process
		p.BuildpackID, p.Direct = d.Buildpack.ID, true
		switch {
		case d.atLeast("0.9") && e.Direct != nil:
			return fmt.Errorf("launch.toml: process.direct is not supported in the buildpack API %s", d.API)
		case !d.atLeast("0.9"):
			p.Direct = e.Direct != nil && *e.Direct
		}
		if !d.atLeast("0.8") {
			p.WorkingDir = ""
		}
		if p.Type == "" || len(p.Command) == 0 {
			return errors.New("launch.toml: a process has no type or no command")
		}
		if p.Default {
			defaults++
		}
		m.add(p)
	}
	if defaults > 1 {
		return errors.New("launch.toml: multiple default process types aren't allowed")
	}
	return nil
}

// add adds a process, which replaces an earlier one of its type. The last default is
// the default.
func (m *metadata) add(p process) {
	switch {
	case p.Default:
		m.DefaultType = p.Type
	case p.Type == m.DefaultType:
		m.DefaultType = ""
	}
	p.Default = false
	m.Processes = append(slices.DeleteFunc(m.Processes, func(o process) bool { return o.Type == p.Type }), p)
}

// list sorts the processes, and makes a web process of the default or the only one, if there
// is none (cnbapplifecycle: ensureWebProcessType).
func (m *metadata) list() {
	slices.SortFunc(m.Processes, func(a, b process) int { return compareText(a.Type, b.Type) })
	for _, p := range m.Processes {
		if p.Type == webType {
			return
		}
	}
	for _, p := range m.Processes {
		if p.Type == m.DefaultType || len(m.Processes) == 1 {
			p.Type = webType
			m.Processes = append(m.Processes, p)
			return
		}
	}
}

const webType = "web"

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// readUnmet reads which requirements a buildpack leaves to later ones.
func readUnmet(dir string, requires []require) (names []string, err error) {
	var f buildFile
	err = toml.ReadFile(filepath.Join(dir, "build.toml"), &f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, u := range f.Unmet {
		if !slices.ContainsFunc(requires, func(r require) bool { return r.Name == u.Name }) {
			return nil, fmt.Errorf("build.toml: unmet.name '%s' must match a requested dependency", u.Name)
		}
		names = append(names, u.Name)
	}
	return names, err
}
