package release

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// Bounds of what is read; the largest of the known releases stay far below.
const (
	maxSpecBytes     = 1 << 20
	maxTemplateBytes = 2 << 20
	maxJobBytes      = 32 << 20 // all templates of a job
	maxTemplates     = 2048     // of a job
)

type spec struct {
	Templates  table[string]   `yaml:"templates"`
	Properties table[property] `yaml:"properties"`
	Packages   []string        `yaml:"packages"`
	Provides   []Provided      `yaml:"provides"`
	Consumes   []Consumed      `yaml:"consumes"`
}

type property struct {
	Description string    `yaml:"description"`
	Default     yaml.Node `yaml:"default"`
}

// table is a map; an empty list is one too, as old releases write it.
type table[V any] map[string]V

func (t *table[V]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		return nil
	}
	return n.Decode((*map[string]V)(t))
}

// ParseSpec reads the spec of a job: all of it but the contents of templates.
// Keys that it does not know it passes over, as BOSH does.
func ParseSpec(name string, text []byte) (Job, error) {
	if len(text) > maxSpecBytes {
		return Job{}, fmt.Errorf("job %q: the spec has %d bytes; at most %d are read", name, len(text), maxSpecBytes)
	}
	root, err := tree.LoadBOSH(text)
	if err != nil {
		return Job{}, fmt.Errorf("job %q: spec: %w", name, err)
	}
	var s spec
	if err := root.Decode(&s); err != nil {
		return Job{}, fmt.Errorf("job %q: spec: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	job := Job{Name: name, Provides: s.Provides, Consumes: s.Consumes, Packages: s.Packages, Properties: map[string]Property{}}
	for key, p := range s.Properties {
		job.Properties[key] = Property{p.Description, tree.Value(&p.Default), tree.OrderOf(&p.Default)}
	}
	if names := tree.OrderOf(tree.Get(root, "properties")); names != nil {
		job.Order = names.Keys
	}
	for source, destination := range s.Templates {
		job.Templates = append(job.Templates, Template{Source: source, Destination: destination})
	}
	slices.SortFunc(job.Templates, func(a, b Template) int { return strings.Compare(a.Destination, b.Destination) })
	return job, job.check()
}

func (j Job) check() error {
	if len(j.Templates) > maxTemplates {
		return fmt.Errorf("job %q: %d templates; at most %d are read", j.Name, len(j.Templates), maxTemplates)
	}
	files := map[string]bool{}
	for _, t := range j.Templates {
		if !local(t.Source) {
			return fmt.Errorf("job %q: template %q is not a path within templates", j.Name, t.Source)
		}
		if !local(t.Destination) {
			return fmt.Errorf("job %q: template %q would be written to %q, which is not a path within the job", j.Name, t.Source, t.Destination)
		}
		if files[t.Destination] {
			return fmt.Errorf("job %q: two templates would be written to %q", j.Name, t.Destination)
		}
		files[t.Destination] = true
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for at, c := range name {
			if c == '/' && files[name[:at]] {
				return fmt.Errorf("job %q: template %q would lie in %q, which is a file", j.Name, name, name[:at])
			}
		}
	}
	return j.checkLinks()
}

func (j Job) checkLinks() error {
	seen := map[string]bool{}
	one := func(kind, name, typ string) error {
		if name == "" || typ == "" {
			return fmt.Errorf("job %q: %s without name or type", j.Name, kind)
		}
		if seen[kind+" "+name] {
			return fmt.Errorf("job %q: %s %q is there twice", j.Name, kind, name)
		}
		seen[kind+" "+name] = true
		return nil
	}
	for _, l := range j.Provides {
		if err := one("provided link", l.Name, l.Type); err != nil {
			return err
		}
	}
	for _, l := range j.Consumes {
		if err := one("consumed link", l.Name, l.Type); err != nil {
			return err
		}
	}
	return nil
}

func local(path string) bool {
	return fs.ValidPath(path) && path != "." && !strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f })
}
