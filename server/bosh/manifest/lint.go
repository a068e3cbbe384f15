package manifest

import (
	"fmt"
	"strings"

	"cupola/runtime/pattern"
)

// Lint returns all faults of a manifest that Parse did not find, the worst
// first.
func Lint(m *Manifest, o Options) Findings {
	l := &linter{m: m, o: o, byName: make(map[string]*Variable, len(m.Variables))}
	if l.bounded() {
		l.all()
	}
	found := l.found.Graded(o)
	found.Sort()
	return found
}

func (l *linter) all() {
	for i := range l.m.Variables {
		v := &l.m.Variables[i]
		l.byName[v.Name] = v
		l.known = append(l.known, v.Name)
	}
	l.known = append(l.known, l.o.Given...)
	l.keys()
	l.clouded()
	l.deployment()
	l.releases()
	l.stemcells()
	l.update(l.m.Update, "/update")
	l.groups()
	l.allPorts()
	l.addons()
	l.variables()
	l.references()
	l.names()
}

// bounded reports lists that exceed the limits; then nothing else is checked.
func (l *linter) bounded() bool {
	jobs := 0
	for _, g := range l.m.InstanceGroups {
		jobs += len(g.Jobs)
	}
	for _, list := range []struct {
		path, what string
		n, most    int
	}{{"/releases", "releases", len(l.m.Releases), 500}, {"/stemcells", "stemcells", len(l.m.Stemcells), 100},
		{"/instance_groups", "instance groups", len(l.m.InstanceGroups), 500}, {"/instance_groups", "jobs", jobs, 5000},
		{"/addons", "addons", len(l.m.Addons), 100}, {"/variables", "variables", len(l.m.Variables), 5000}} {
		if list.n > list.most {
			l.found.errorf(At{Path: list.path, Line: l.m.at.Line}, "%d %s; at most %d can be", list.n, list.what, list.most)
		}
	}
	return l.found == nil
}

// check parses and lints a manifest and returns all findings, the worst first.
func check(text []byte, o Options) (*Manifest, Findings) {
	m, found := Parse(text)
	found = append(found.Graded(o), Lint(m, o)...)
	found.Sort()
	return m, found
}

// linter gathers what is wrong with a manifest.
type linter struct {
	m      *Manifest
	o      Options
	found  Findings
	byName map[string]*Variable
	known  []string // variables that are declared or given
}

// Limits of what one deployment can hold.
const (
	maxInstances = 1000 // of a group
	maxAZs       = 50   // of a group
	maxTotal     = 10_000
	maxName      = 200 // so that files can be named for it
)

var deploymentName = pattern.Lazy(`^[a-zA-Z0-9_-]+$`)

// plainName is that of what gets a directory or a file: no path leads out of it.
var plainName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

func (l *linter) soft(at At, format string, args ...any) {
	l.found.add(Finding{Level: Error, Path: at.Path, Line: at.Line, What: fmt.Sprintf(format, args...), soft: true})
}

// keys reports keys that have no effect, or must not be set.
func (l *linter) keys() {
	for _, s := range l.m.set {
		k, ok := keyOf(s.key)
		switch {
		case !ok, k.When != "" && s.value != k.When, l.m.ofCloud(s.key):
		case k.Use == refused && (k.When != "" || !s.empty):
			l.found.add(Finding{Level: Error, Path: s.Path, Line: s.Line, What: "not supported", Mend: k.Text, soft: true})
		case k.Use == warned && (l.o.Strict || !s.empty):
			text := k.Text
			if text == "" {
				text = "not used"
			}
			l.found.warnf(s.At, "%s", text)
		}
	}
}

func (l *linter) deployment() {
	at := l.m.at
	if at.Path == "" {
		return // it is not a map
	}
	switch name := l.m.Name; {
	case variableText().MatchString(name):
	case name == "":
		l.found.errorf(at, "the deployment has no name")
	case !deploymentName().MatchString(name) || clean(name) == "":
		l.found.errorf(at, "%q is not a valid deployment name; use letters, digits, hyphens and underscores", cut(name, 60))
	case len(name) > maxName:
		l.found.errorf(at, "the name has %d characters; at most %d leave room for the names of its objects", len(name), maxName)
	}
	if len(l.m.InstanceGroups) == 0 {
		l.found.warnf(At{Path: "/instance_groups", Line: at.Line}, "there are none: nothing runs")
	}
}

// name checks what a noun is called, and that no other of seen is called so.
func (l *linter) name(at At, what, name string, seen map[string]bool) {
	switch {
	case variableText().MatchString(name):
	case name == "":
		l.found.errorf(at, "the %s has no name", what)
	case len(name) > maxName || !plainName().MatchString(name) || strings.Contains(name, ".."):
		l.found.errorf(at, "%q cannot be the name of a %s; it takes up to %d letters, digits, underscores, hyphens and dots, and begins with a letter or a digit", cut(name, 60), what, maxName)
	case seen[name]:
		l.found.errorf(at, "there is another %s %q", what, name)
	}
	seen[name] = true
}

func (l *linter) update(u Update, path string) {
	at := At{Path: path, Line: u.line}
	if u.MaxInFlight != nil && u.MaxInFlight.N == 0 {
		l.found.warnf(At{at.Path + "/max_in_flight", at.Line}, "one instance at a time is the least")
	}
	if s := u.InitialAZs; s != "" && s != "serial" && s != "parallel" && !variableText().MatchString(s) {
		l.found.errorf(At{at.Path + "/initial_deploy_az_update_strategy", at.Line}, "expected serial or parallel, got %q", cut(s, 60))
	}
	if s := u.VMStrategy; s != "" && s != "delete-create" && s != "create-swap-delete" && !variableText().MatchString(s) {
		l.found.errorf(At{at.Path + "/vm_strategy", at.Line}, "expected delete-create or create-swap-delete, got %q", cut(s, 60))
	}
}
