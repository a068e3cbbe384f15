package manifest

import (
	"fmt"
	"strings"
)

// names rejects objects with the same name, and reports shortened names.
func (l *linter) names() {
	n, taken := l.m.Names(), map[string]string{}
	total := 0
	for _, g := range l.m.InstanceGroups {
		if total += g.Instances; g.Name == "" || total > maxTotal || g.Instances > maxInstances {
			continue // already reported
		}
		names := []string{"Service " + n.Group(g.Name), "secret " + n.Resolved(g.Name, 1)}
		for i := range g.Instances {
			names = append(names, "Service "+n.Service(g.Name, i))
		}
		l.reserve(taken, g.At, names)
		l.shortened(n, g)
		jobs := map[string]string{}
		for _, j := range g.Jobs {
			l.reserve(jobs, j.At, []string{"container " + clean(j.Name)})
		}
	}
	for _, r := range l.m.Releases {
		l.reserve(taken, r.At, []string{"secret " + n.Registry(r.Name)})
	}
}

func (l *linter) shortened(n Names, g *InstanceGroup) {
	set := n.StatefulSet(g.Name, len(g.AZs)-1, 1)
	if plain := clean(l.m.Name + "-" + g.Name); g.Lifecycle == Service && !strings.HasPrefix(set, plain+"-") {
		l.found.infof(g.At, "its name in Kubernetes is shortened to %s", set)
	}
}

// reserve reserves names for a path, and reports names that another path has. Two
// equal paths have one name for the author, too: that is reported elsewhere.
func (l *linter) reserve(taken map[string]string, at At, names []string) {
	for _, name := range names {
		if other, ok := taken[name]; ok && other != at.Path {
			l.found.add(Finding{Level: Error, Path: at.Path, Line: at.Line, What: fmt.Sprintf("its %s would have the name of one of %s", name, other), Mend: "rename one of them"})
			return
		}
		taken[name] = at.Path
	}
}
