package manifest

import (
	"maps"
	"slices"
)

// Addon is jobs that are placed on the instance groups that its rules pick.
type Addon struct {
	At
	Name             string
	Jobs             []*Job
	Include, Exclude *Placement // nil: not given
}

// Placement is a rule of an addon: every part that is given has to hold, each
// by any of its values.
type Placement struct {
	Stemcells      []Stemcell
	Deployments    []string
	Jobs           []PlacedJob
	InstanceGroups []string
	Networks       []string
	Teams          []string
	AZs            []string
	Lifecycle      Lifecycle
}

// PlacedJob is a job that a group has to have; an empty field is any.
type PlacedJob struct{ Name, Release string }

func addon(o *object) *Addon {
	a := &Addon{At: o.At, Name: o.text("name"), Include: placement(o.in("include")), Exclude: placement(o.in("exclude"))}
	o.each("jobs", "name", func(j *object) {
		placed := job(j)
		placed.Addon = a.Name
		a.Jobs = append(a.Jobs, placed)
	})
	return a
}

func placement(o *object) *Placement {
	if o == nil {
		return nil
	}
	defer o.done()
	p := &Placement{Deployments: o.texts("deployments"), InstanceGroups: o.texts("instance_groups"), Networks: o.texts("networks"), Teams: o.texts("teams"),
		AZs: o.texts("azs"), Lifecycle: Lifecycle(o.text("lifecycle"))}
	o.each("stemcell", "os", func(s *object) {
		p.Stemcells = append(p.Stemcells, Stemcell{At: s.At, OS: s.text("os"), Version: s.text("version")})
	})
	o.each("jobs", "name", func(j *object) { p.Jobs = append(p.Jobs, PlacedJob{j.text("name"), j.text("release")}) })
	return p
}

// placedOn reports whether an addon's jobs belong to a group. Without include
// they belong to every service. Errands are picked only by rules that name
// their lifecycle.
func (m *Manifest) placedOn(a *Addon, g *InstanceGroup) bool {
	errand := g.Lifecycle != Service
	switch {
	case a.Include == nil && errand:
		return false
	case a.Include != nil && (errand && a.Include.Lifecycle == "" || !m.holds(a.Include, g)):
		return false
	}
	return a.Exclude == nil || !m.holds(a.Exclude, g)
}

// holds reports whether every part of a rule that is given holds for a group.
func (m *Manifest) holds(p *Placement, g *InstanceGroup) bool {
	parts := []struct{ given, holds bool }{
		{p.Stemcells != nil, slices.ContainsFunc(p.Stemcells, func(s Stemcell) bool { return m.runsOn(g, s) })},
		{p.Deployments != nil, slices.Contains(p.Deployments, m.Name)},
		{p.Jobs != nil, slices.ContainsFunc(p.Jobs, g.has)},
		{p.InstanceGroups != nil, slices.Contains(p.InstanceGroups, g.Name)},
		{p.Networks != nil, slices.ContainsFunc(g.Networks, func(n Network) bool { return slices.Contains(p.Networks, n.Name) })},
		{p.Teams != nil, false},
		{p.AZs != nil, slices.ContainsFunc(g.AZs, func(az string) bool { return slices.Contains(p.AZs, az) })},
		{p.Lifecycle != "", p.Lifecycle == g.Lifecycle},
	}
	for _, part := range parts {
		if part.given && !part.holds {
			return false
		}
	}
	return true
}

func (g *InstanceGroup) has(want PlacedJob) bool {
	return slices.ContainsFunc(g.Jobs, func(j *Job) bool {
		return (want.Name == "" || want.Name == j.Name) && (want.Release == "" || want.Release == j.Release)
	})
}

// runsOn reports whether a job of the group has an image of an operating system.
func (m *Manifest) runsOn(g *InstanceGroup, want Stemcell) bool {
	return slices.ContainsFunc(g.Jobs, func(j *Job) bool {
		r := m.Release(j.Release)
		if r == nil {
			return false
		}
		s := m.stemcellOf(g, r)
		return s != nil && s.OS == want.OS && (want.Version == "" || want.Version == s.Version)
	})
}

// WithAddons returns the manifest with the jobs of its addons in the groups
// that they belong to, after the groups' own, and without those that are
// built in. The rules see the groups as they
// were before. A job that a group has already is not placed again. What is
// unchanged is shared with m.
func (m *Manifest) WithAddons() *Manifest {
	with := *m
	with.InstanceGroups = make([]*InstanceGroup, len(m.InstanceGroups))
	for i, g := range m.InstanceGroups {
		grown := *g
		grown.Jobs = slices.DeleteFunc(slices.Clone(g.Jobs), (*Job).builtIn)
		for _, a := range m.Addons {
			if !m.placedOn(a, g) {
				continue
			}
			for _, j := range a.Jobs {
				if grown.job(j.Name) == nil && !j.builtIn() {
					grown.Jobs = append(slices.Clip(grown.Jobs), j.copy())
				}
			}
		}
		with.InstanceGroups[i] = &grown
	}
	return &with
}

func (j *Job) copy() *Job {
	c := *j
	c.Consumes, c.Provides, c.Properties = maps.Clone(j.Consumes), maps.Clone(j.Provides), maps.Clone(j.Properties)
	return &c
}

// builtIn reports whether cupola does itself what a job is there for: names in DNS, and
// bpm. Nothing is fetched of such a job.
func (j *Job) builtIn() bool {
	return j.Name == aliasesJob || j.Name == bpmName && j.Release == bpmName
}

// bpmName is the name of bpm's release, and of its job.
const bpmName = "bpm"

// Takes reports whether an addon's jobs belong to any group.
func (m *Manifest) Takes(a *Addon) bool {
	return slices.ContainsFunc(m.InstanceGroups, func(g *InstanceGroup) bool { return m.placedOn(a, g) })
}
