package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/runtime/suggest"
)

// aliases checks the names in DNS that a job gives.
func (l *linter) aliases(j *Job) {
	for _, name := range slices.Sorted(maps.Keys(j.Provides)) {
		for _, a := range j.Provides[name].Aliases {
			if err := a.check(); err != nil {
				l.found.errorf(a.At, "%v", err)
			}
		}
	}
	if j.Name != aliasesJob {
		return
	}
	at := At{j.Path + "/properties/aliases", j.Line}
	all, faults := j.aliases(l.m.Name)
	for _, err := range faults {
		below, what, _ := strings.Cut(err.Error(), ": ")
		l.found.errorf(At{at.Path + below, at.Line}, "%s", what)
	}
	for n, a := range all {
		for k, t := range a.Targets {
			if text := t.Group + t.Deployment; variableText().MatchString(text+l.m.Name) || t.Group == "" {
				continue
			}
			l.target(At{fmt.Sprintf("%s/%d/targets/%d", at.Path, n, k), at.Line}, t)
		}
	}
}

// target reports a target without instances.
func (l *linter) target(at At, t AliasTarget) {
	switch {
	case !globs(t.Deployment, l.m.Name):
		l.found.infof(at, "leads to the deployment %q", cut(t.Deployment, 60))
	case !slices.ContainsFunc(l.m.InstanceGroups, func(g *InstanceGroup) bool { return globs(t.Group, g.Name) }):
		var names []string
		for _, g := range l.m.InstanceGroups {
			names = append(names, g.Name)
		}
		l.found.warnf(at, "there is no instance group %q%s", cut(t.Group, 60), suggest.Hint(t.Group, names))
	}
}

// builtIn reports whether a release has only jobs that are built in.
func (l *linter) builtIn(r *Release) bool {
	named, runs := false, false
	of := func(jobs []*Job) {
		for _, j := range jobs {
			if j.Release == r.Name {
				named, runs = true, runs || !j.builtIn()
			}
		}
	}
	for _, g := range l.m.InstanceGroups {
		of(g.Jobs)
	}
	for _, a := range l.m.Addons {
		of(a.Jobs)
	}
	return named && !runs
}
