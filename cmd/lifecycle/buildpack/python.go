package buildpack

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pythonMarkers are the files that make an app Python's (python-buildpack:
// bin/detect).
var pythonMarkers = []string{"requirements.txt", "setup.py", "environment.yml", "Pipfile"}

// pythonPrograms are started, in this order, when there is no Procfile.
var pythonPrograms = []string{"main.py", "app.py", "server.py"}

func detectPython(app string) bool {
	return slices.ContainsFunc(pythonMarkers, func(name string) bool { return exists(filepath.Join(app, name)) })
}

func (s *stage) findPython() (string, error) {
	return s.find("python", "", []string{"python3", "python"}, "/usr/local/bin")
}

// pythonApp is an app of Python, with the program that runs it.
type pythonApp struct {
	*stage
	python string
}

// supplyPython installs the app's requirements next to it.
func supplyPython(s *stage) error {
	own, err := s.findPython()
	if err != nil {
		return err
	}
	w, err := s.pythonRequirement()
	if err != nil {
		return err
	}
	chosen, err := s.choose("Python", w, s.findAll(own, "--version", "/usr/bin/python3.[0-9]", "/usr/bin/python3.[0-9][0-9]", "/usr/local/bin/python3.[0-9]*"))
	if err != nil {
		return err
	}
	p := pythonApp{stage: s, python: chosen.path}
	s.step("Using Python %s of the stack", chosen.version)
	if err := p.link(); err != nil {
		return err
	}
	if err := p.install(); err != nil {
		return err
	}
	lines := []string{
		`export PYTHONPATH="` + s.atRuntime("python") + `:$HOME${PYTHONPATH:+:$PYTHONPATH}"`,
		`export PATH="` + s.atRuntime("python/bin") + `:$PATH"`,
		`export PYTHONUNBUFFERED=1`,
		`export PYTHONHASHSEED="${PYTHONHASHSEED:-random}"`,
		`export FORWARDED_ALLOW_IPS='*'`, // the router is the only one who calls
	}
	return s.profileScript("python", lines...)
}

func finalizePython(s *stage) (string, error) {
	p := pythonApp{stage: s, python: filepath.Join(s.deps, "bin", "python")} // the link that supply made
	if err := p.collectStatic(); err != nil {
		return "", err
	}
	return s.pythonCommand(), nil
}

// link puts the stack's Python into the search path as python and python3,
// as Cloud Foundry's buildpack does: many stacks have only python3.
func (p pythonApp) link() error {
	bin := filepath.Join(p.deps, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"python", "python3"} {
		if err := os.Symlink(p.python, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}

// pythonRequirement reads runtime.txt (`python-3.11.x`), else .python-version (`3.11`).
func (s *stage) pythonRequirement() (requirement, error) {
	for _, name := range []string{"runtime.txt", ".python-version"} {
		text, err := s.readAppFile(name)
		if err != nil {
			return requirement{}, err
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				return requirement{from: name, constraint: strings.TrimPrefix(line, "python-"), digits: 2}, nil
			}
		}
	}
	return requirement{}, nil
}

// install installs into the dependency directory: requirements.txt, or
// the app as a package.
func (p pythonApp) install() error {
	what := p.pipArguments()
	if what == nil {
		if p.has("Pipfile") || p.has("environment.yml") {
			p.warn("neither Pipfile nor environment.yml is read; write what the app needs to requirements.txt")
		}
		return nil
	}
	target := filepath.Join(p.deps, "python")
	if _, err := p.output(call{argv: []string{p.python, "-m", "pip", "--version"}}); err != nil {
		return p.installWheels(target)
	}
	argv := []string{p.python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--root-user-action=ignore", "--no-compile", "--target", target}
	if !isEmptyDirectory(filepath.Join(p.app, "vendor")) {
		p.step("Installing requirements from vendor/")
		argv = append(argv, "--no-index", "--find-links=vendor")
	} else {
		p.step("Installing requirements")
		argv = append(argv, "--retries=1", "--cache-dir="+filepath.Join(p.cache, "pip"))
	}
	if err := p.run(call{argv: append(argv, what...)}); err != nil {
		p.info("If packages could not be fetched: run `pip download -r requirements.txt -d vendor` and push again.")
		return err
	}
	return nil
}

// pipArguments is what to install, nil for nothing.
func (s *stage) pipArguments() []string {
	text, err := os.ReadFile(filepath.Join(s.app, "requirements.txt"))
	if err == nil {
		for line := range bytes.Lines(text) {
			if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
				return []string{"-r", "requirements.txt"}
			}
		}
		return nil
	}
	if s.has("setup.py") {
		return []string{"."}
	}
	if text, err := os.ReadFile(filepath.Join(s.app, "pyproject.toml")); err == nil && bytes.Contains(text, []byte("[build-system]")) {
		return []string{"."}
	}
	return nil
}

// collectStatic does for Django what Cloud Foundry's buildpack does, unless
// DISABLE_COLLECTSTATIC is set.
func (p pythonApp) collectStatic() error {
	target := filepath.Join(p.deps, "python")
	if os.Getenv("DISABLE_COLLECTSTATIC") != "" || !p.has("manage.py") || !exists(filepath.Join(target, "django")) {
		return nil
	}
	p.step("Running: python manage.py collectstatic --noinput")
	err := p.run(call{argv: []string{p.python, "manage.py", "collectstatic", "--noinput"}, env: []string{"PYTHONPATH=" + target}})
	if err != nil {
		p.info("Set DISABLE_COLLECTSTATIC to leave this step out.")
	}
	return err
}

func (s *stage) pythonCommand() string {
	if s.has("Procfile") {
		return ""
	}
	for _, name := range pythonPrograms {
		if s.has(name) {
			s.info("No Procfile: the start command is python %s.", name)
			return "python " + name
		}
	}
	s.warn("no Procfile: name the start command there, with cf push -c or in the manifest")
	return ""
}
