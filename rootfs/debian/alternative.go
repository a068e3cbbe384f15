package debian

import (
	"fmt"
	"maps"
	pathpkg "path"
	"slices"
	"strconv"
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

// parseAlternatives finds the calls in a maintainer script whose arguments are
// plain words. Those with variables are left out: see scriptedAlternatives.
func parseAlternatives(script string) []alternative {
	var all []alternative
	script = strings.ReplaceAll(script, "\\\n", " ")
	for line := range strings.Lines(script) {
		for {
			_, after, ok := strings.Cut(line, "update-alternatives ")
			if !ok {
				break
			}
			line = after
			if a, ok := parseAlternative(shellWords(after)); ok {
				all = append(all, a)
			}
		}
	}
	return all
}

// shellWords splits a simple command at blanks, takes quotes away and stops at
// the command's end, or where words begin that only a shell can know.
func shellWords(s string) []string {
	var words []string
	var word strings.Builder
	quote, started := rune(0), false
	end := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	for _, r := range s {
		switch {
		case r == '(' && word.String() == "$" || r == '#' && !started && quote == 0:
			return words // a substitution, a comment
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, started = r, true
		case strings.ContainsRune(";|&><)\n", r):
			end()
			return words
		case r == ' ' || r == '\t':
			end()
		default:
			word.WriteRune(r)
			started = true
		}
	}
	end()
	return words
}

// parseAlternative reads the arguments of update-alternatives.
func parseAlternative(args []string) (alternative, bool) {
	var a alternative
	found := false
	for len(args) > 0 {
		switch {
		case args[0] == "--install" && len(args) >= 5:
			priority, err := strconv.Atoi(args[4])
			if err != nil {
				return a, false
			}
			a.link, a.name, a.path, a.priority = args[1], args[2], args[3], priority
			found, args = true, args[5:]
		case args[0] == "--slave" && len(args) >= 4:
			a.slaves = append(a.slaves, alternative{link: args[1], name: args[2], path: args[3]})
			args = args[4:]
		case strings.HasPrefix(args[0], "--") && args[0] != "--install" && args[0] != "--slave":
			args = args[1:]
		default:
			return a, false
		}
	}
	return a, found && plainPaths(append(a.slaves, a))
}

func plainPaths(all []alternative) bool {
	return !slices.ContainsFunc(all, func(a alternative) bool {
		return !strings.HasPrefix(a.link, "/") || !strings.HasPrefix(a.path, "/") || strings.ContainsAny(a.link+a.name+a.path, "$`*?")
	})
}

// scriptedAlternatives stands in for scripts that make theirs in a loop or a
// function: a suffixed program in /usr/bin gets its plain name, and so on.
func scriptedAlternatives(t *tree, p *installed) []alternative {
	variant, _ := strings.CutPrefix(p.Name, "imagemagick-6.")
	switch {
	case p.Name == "procps":
		return suffixAlternatives(t, ".procps", 50)
	case variant != p.Name:
		return suffixAlternatives(t, "-im6."+variant, 10)
	case p.Name == "xz-utils":
		return lzmaAlternatives()
	case p.Name == "vim" || strings.HasPrefix(p.Name, "vim-"):
		return vimAlternatives(strings.TrimPrefix(p.Name[len("vim"):], "-"))
	case strings.HasPrefix(p.Name, "openjdk-"):
		return javaAlternatives(p)
	}
	return nil
}

func suffixAlternatives(t *tree, suffix string, priority int) []alternative {
	var all []alternative
	for _, path := range t.glob("usr/bin", "*"+suffix) {
		plain := strings.TrimSuffix(path, suffix)
		all = append(all, alternative{link: "/" + plain, name: strings.TrimPrefix(plain, "usr/bin/"), path: "/" + path, priority: priority})
	}
	return all
}

// lzmaAlternatives are xz's names of old: lzcat for xzcat.
func lzmaAlternatives() []alternative {
	a := alternative{link: "/usr/bin/lzma", name: "lzma", path: "/usr/bin/xz", priority: 20}
	a.slaves = []alternative{{link: "/usr/bin/unlzma", name: "unlzma", path: "/usr/bin/unxz"}}
	for _, util := range []string{"cat", "more", "less", "diff", "cmp", "grep", "egrep", "fgrep"} {
		a.slaves = append(a.slaves, alternative{link: "/usr/bin/lz" + util, name: "lz" + util, path: "/usr/bin/xz" + util})
	}
	return []alternative{a}
}

// vimAlternatives follows the priorities of Vim's variants.
func vimAlternatives(variant string) []alternative {
	if variant == "" {
		variant = "basic"
	}
	priority := map[string]int{"basic": 30, "nox": 40, "tiny": 15}[variant]
	if priority == 0 {
		priority = 50
	}
	var all []alternative
	for _, name := range []string{"editor", "ex", "rview", "rvim", "vi", "view", "vim", "vimdiff"} {
		if variant != "tiny" || !strings.Contains(name, "vim") {
			all = append(all, alternative{link: "/usr/bin/" + name, name: name, path: "/usr/bin/vim." + variant, priority: priority})
		}
	}
	return all
}

// javaAlternatives links every tool of a Java release; of several releases the
// newest wins.
func javaAlternatives(p *installed) []alternative {
	release, _, _ := strings.Cut(strings.TrimPrefix(p.Name, "openjdk-"), "-")
	n, err := strconv.Atoi(release)
	if err != nil {
		return nil
	}
	var all []alternative
	for _, path := range p.shipped {
		if ok, _ := pathpkg.Match("/usr/lib/jvm/*/bin/*", path); ok {
			name := pathpkg.Base(path)
			all = append(all, alternative{link: "/usr/bin/" + name, name: name, path: path, priority: 100*n + 11})
		}
	}
	return all
}
