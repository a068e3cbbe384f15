package manifest

import "fmt"

// names refuses objects that would have one name, and tells of names that are
// shortened.
func (l *linter) names() {
	n, taken := l.m.Names(), map[string]string{}
	total := 0
	for _, g := range l.m.InstanceGroups {
		if total += g.Total(); g.Name == "" || total > maxTotal || g.Instances > maxInstances {
			continue // what is wrong is told already
		}
		l.take(taken, g, "Service "+n.Group(g.Name))
		for i := range g.Total() {
			l.take(taken, g, "Service "+n.Service(g.Name, i))
		}
		set := n.StatefulSet(g.Name, -1, 1)
		if len(g.AZs) > 0 {
			set = n.StatefulSet(g.Name, len(g.AZs)-1, 1)
		}
		l.take(taken, g, "secret "+n.Resolved(g.Name, 1))
		if plain := l.m.Name + "-" + g.Name; g.Lifecycle == Service && len(set) == MaxController && len(clean(plain)) > MaxController-3 {
			l.found.infof(g.At, "its name in Kubernetes is shortened to %s", set)
		}
	}
}

// take gives a name to a group, unless another has it.
func (l *linter) take(taken map[string]string, g *InstanceGroup, name string) {
	if other, ok := taken[name]; ok && other != g.Path {
		l.found.add(Finding{Level: Error, Path: g.Path, Line: g.Line, What: fmt.Sprintf("its %s has the name of one of %s", name, other), Mend: "rename one of the groups"})
		return
	}
	taken[name] = g.Path
}
