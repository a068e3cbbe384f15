package manifest

import (
	"slices"
	"strings"
)

func (l *linter) addons() {
	seen := map[string]bool{}
	for _, a := range l.m.Addons {
		l.name(a.At, "addon", a.Name, seen)
		jobs := map[string]bool{}
		for _, j := range a.Jobs {
			l.job(j, jobs)
			if j.Quarks != nil {
				l.quarks(j.Quarks)
			}
		}
		for _, p := range []*Placement{a.Include, a.Exclude} {
			if p != nil && p.Lifecycle != "" && !slices.Contains(lifecycles, p.Lifecycle) && !variableText().MatchString(string(p.Lifecycle)) {
				l.found.errorf(a.At, "unknown lifecycle %q; it is service, errand or auto-errand", cut(string(p.Lifecycle), 60))
			}
		}
		l.placed(a)
	}
	l.addonImages()
}

// placed reports where an addon's jobs go.
func (l *linter) placed(a *Addon) {
	var on, twice []string
	for _, g := range l.m.InstanceGroups {
		if !l.m.placedOn(a, g) {
			continue
		}
		on = append(on, g.Name)
		if slices.ContainsFunc(a.Jobs, func(j *Job) bool { return g.job(j.Name) != nil }) {
			twice = append(twice, g.Name)
		}
	}
	if on == nil {
		l.found.infof(a.At, "placed nowhere")
	} else {
		l.found.infof(a.At, "placed on %s", cut(strings.Join(on, ", "), 1000))
	}
	if twice != nil {
		l.found.warnf(a.At, "%s has a job of the same name already, which stays", cut(strings.Join(twice, ", "), 1000))
	}
}

// addonImages reports addons' jobs that have no image where they are placed.
func (l *linter) addonImages() {
	reported := map[string]bool{}
	for _, g := range l.m.WithAddons().InstanceGroups {
		for _, j := range g.Jobs {
			r := l.m.Release(j.Release)
			if j.Addon == "" || r == nil || r.fit() != nil || reported[j.Path] || variableText().MatchString(r.URL+r.Version+g.Stemcell) {
				continue
			}
			if _, err := l.m.Image(g, j); err != nil {
				reported[j.Path] = true
				l.found.add(Finding{Level: Error, Path: j.Path, Line: j.Line, What: err.Error(), Mend: l.fixImage(g, r)})
			}
		}
	}
}
