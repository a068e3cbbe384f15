package debian

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An alternative is one "update-alternatives --install".
type alternative struct {
	link, name, path string // paths with leading slash
	priority         int
	slaves           []alternative // without priority and slaves
}

// finishAlternatives installs the alternatives that the packages' scripts ask
// for: the links, and the files that update-alternatives keeps.
func finishAlternatives(t *tree, packages []*installed) error {
	groups := make(map[string][]alternative)
	for _, p := range packages {
		for _, a := range slices.Concat(parseAlternatives(string(p.members["postinst"])), scriptedAlternatives(t, p)) {
			if exists(t, a.path) && isAlternativeName(a.name) {
				groups[a.name] = append(groups[a.name], a)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		group := groups[name]
		slices.SortStableFunc(group, func(a, b alternative) int { return strings.Compare(a.path, b.path) })
		group = slices.CompactFunc(group, func(a, b alternative) bool { return a.path == b.path })
		best := slices.MaxFunc(group, func(a, b alternative) int { return a.priority - b.priority })
		for _, a := range append([]alternative{best}, best.slaves...) {
			if err := installAlternative(t, a); err != nil {
				return err
			}
		}
		if err := t.put("var/lib/dpkg/alternatives/"+name, 0o644, alternativeState(best, group)); err != nil {
			return err
		}
	}
	return nil
}

func exists(t *tree, path string) bool {
	full, err := t.walk(path, true)
	return err == nil && t.nodes[full] != nil
}

func isAlternativeName(s string) bool {
	return s != "" && s[0] != '.' && !strings.ContainsAny(s, "/ \t\n$`\"'\\*?")
}

// installAlternative leaves a link alone that a package ships itself.
func installAlternative(t *tree, a alternative) error {
	if n := t.lookup(a.link); n != nil && n.owner != noPackage || !exists(t, a.path) {
		return nil
	}
	if err := t.symlink("etc/alternatives/"+a.name, a.path, t.own(0o777)); err != nil {
		return err
	}
	return t.symlink(strings.TrimPrefix(a.link, "/"), "/etc/alternatives/"+a.name, t.own(0o777))
}

// alternativeState is the format of update-alternatives' administrative files.
func alternativeState(best alternative, group []alternative) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "auto\n%s\n", best.link)
	for _, s := range best.slaves {
		fmt.Fprintf(&b, "%s\n%s\n", s.name, s.link)
	}
	b.WriteString("\n")
	for _, a := range group {
		fmt.Fprintf(&b, "%s\n%d\n", a.path, a.priority)
		for _, s := range best.slaves {
			i := slices.IndexFunc(a.slaves, func(other alternative) bool { return other.name == s.name })
			if i >= 0 {
				b.WriteString(a.slaves[i].path)
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	return []byte(b.String())
}
