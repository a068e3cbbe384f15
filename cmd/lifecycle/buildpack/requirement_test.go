package buildpack

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func TestRequirements(t *testing.T) {
	t.Setenv("GOTOOLCHAIN", "")
	python := func(s *stage) (requirement, error) { return s.pythonRequirement() }
	node := func(s *stage) (requirement, error) {
		p, err := s.readPackage()
		if err != nil {
			return requirement{}, err
		}
		return s.nodeRequirement(p)
	}
	ruby := func(s *stage) (requirement, error) { return s.rubyRequirement() }
	golang := func(s *stage) (requirement, error) { return s.goRequirement() }
	tests := []struct {
		name       string
		read       func(*stage) (requirement, error)
		files      map[string]string
		yes, no    string // versions
		constraint string
	}{
		{"runtime.txt", python, map[string]string{"runtime.txt": "python-3.11.x\n", ".python-version": "3.9"}, "3.11.2", "3.12.1", "3.11.x"},
		{"patch release", python, map[string]string{"runtime.txt": "python-3.11.4"}, "3.11.2", "3.10.4", "3.11.4"},
		{".python-version", python, map[string]string{".python-version": "# mine\n3.11\n"}, "3.11.9", "3.9.1", "3.11"},
		{"no Python", python, nil, "2.7", "", ""},
		{"engines", node, map[string]string{"package.json": `{"engines": {"node": ">=18 <21"}}`}, "20.1.0", "21.0.0", ">=18 <21"},
		{"exact engine", node, map[string]string{"package.json": `{"engines": {"node": "18.17.0"}}`}, "18.19.1", "20.0.0", "18.17.0"},
		{".nvmrc", node, map[string]string{"package.json": "{}", ".nvmrc": "v20\n"}, "20.5.0", "18.0.0", "v20"},
		{"line of Node.js", node, map[string]string{"package.json": "{}", ".nvmrc": "lts/iron"}, "18.0.0", "", ""},
		{"Gemfile", ruby, map[string]string{"Gemfile": "source 'x'\nruby '~> 3.1', engine: 'ruby' # comment\n", ".ruby-version": "2.7.1"}, "3.1.2", "2.7.1", "~> 3.1"},
		{"exact Ruby", ruby, map[string]string{"Gemfile": "ruby \"3.1.3\"\n"}, "3.1.3", "3.1.2", "3.1.3"}, // as Bundler
		{"two bounds", ruby, map[string]string{"Gemfile": "ruby '>= 3.0', '< 3.3'\n"}, "3.2.1", "3.3.0", ">= 3.0, < 3.3"},
		{".ruby-version", ruby, map[string]string{"Gemfile": "gem 'ruby'\n", ".ruby-version": "ruby-3.1.0\n"}, "3.1.2", "3.2.0", "3.1.0"},
		{"go.mod", golang, map[string]string{"go.mod": "module m\n\ngo 1.22.3\n"}, "1.26.1", "1.19", ">=1.22.3"},
	}
	for _, test := range tests {
		s := &stage{app: tree(t, test.files), log: io.Discard}
		w, err := test.read(s)
		if err != nil || w.constraint != test.constraint {
			t.Errorf("%s: got %+v, %v; want %s", test.name, w, err, test.constraint)
			continue
		}
		if ok, _ := w.accepts(test.yes); !ok {
			t.Errorf("%s: %s is refused", test.name, test.yes)
		}
		if ok, _ := w.accepts(test.no); ok && test.no != "" {
			t.Errorf("%s: %s is accepted", test.name, test.no)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Setenv("CF_STACK", "mine")
	dir := tree(t, map[string]string{"go*": "#!/bin/sh\necho go version go1.19.8 linux\n", "go-2*": "#!/bin/sh\ntest ! -e go.mod && echo go version go1.21 linux\n", "go-3*": "#!/bin/sh\necho go version go1.23.1 linux\n", "go-4*": "#!/bin/sh\nexit 1\n", "go.mod": "go 1.30\n"})
	var log strings.Builder
	s := &stage{log: &log, app: dir}
	all := s.findAll(filepath.Join(dir, "go"), "version", filepath.Join(dir, "go*"))
	for constraint, want := range map[string]string{"": "1.19.8", ">=1.20": "1.23.1", "1.21": "1.21"} {
		if got, err := s.choose("Go", requirement{constraint: constraint}, all); err != nil || got.version != want {
			t.Errorf("%q: got %v, %v; want %s", constraint, got, err, want)
		}
	}
	_, err := s.choose("Go", requirement{from: "go.mod", constraint: ">=1.30"}, all)
	if want := "go.mod asks for Go >=1.30, which stack 'mine' does not have. Available versions: [1.19.8 1.23.1 1.21]"; err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
	_, err = s.choose("Go", requirement{from: "go.mod", constraint: ">=1.24"}, all)
	if want := "Available versions: [1.19.8 1.23.1 1.21]. Push with -s debian13, which has 1.24.4 (if cf stacks does not list it: sudo cupola stack build debian13 --with go)"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v; want %s", err, want)
	}
	if got, err := s.choose("Go", requirement{from: "go.mod", constraint: "1.23.9", digits: 2}, all); err != nil || got.version != "1.23.1" || !strings.Contains(log.String(), "go.mod asks for Go 1.23.9; stack 'mine' has 1.23.1, which is used.") {
		t.Errorf("got %v, %v, %q; want the nearest and a warning", got, err, log.String())
	}
}
