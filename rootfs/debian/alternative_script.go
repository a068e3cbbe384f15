package debian

import (
	pathpkg "path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// parseAlternatives finds the calls in a maintainer script whose arguments are
// plain words, or become so when loops are written out. For the rest there is
// scriptedAlternatives.
func parseAlternatives(script string) []alternative {
	var all []alternative
	script = expandLoops(strings.ReplaceAll(script, "\\\n", " "))
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
		return !strings.HasPrefix(a.link, "/") || !strings.HasPrefix(a.path, "/") || !isAlternativeName(a.name) || strings.ContainsAny(a.link+a.path, "$`*?")
	})
}

// loops matches a loop of plain words that has no other within.
var loops = regexp.MustCompile(`(?ms)^[ \t]*for (\w+) in ([^;\n$` + "`" + `]*)[;\n]\s*do\b(.*?)^[ \t]*done\b`)

// maxLoop bounds what a loop is written out to.
const maxLoop = 1 << 20

// expandLoops writes a loop's body once for each of its words.
func expandLoops(script string) string {
	return loops.ReplaceAllStringFunc(script, func(loop string) string {
		m := loops.FindStringSubmatch(loop)
		words := strings.Fields(m[2])
		if len(words)*len(m[3]) > maxLoop {
			return ""
		}
		variable := regexp.MustCompile(`\$\{` + m[1] + `\}|\$` + m[1] + `\b`)
		var b strings.Builder
		for _, word := range words {
			b.WriteString(variable.ReplaceAllLiteralString(m[3], word) + "\n")
		}
		return b.String()
	})
}

// scriptedAlternatives stands in for scripts that make theirs in functions.
func scriptedAlternatives(t *tree, p *installed) []alternative {
	switch {
	case p.Name == "procps":
		return procpsAlternatives(t)
	case p.Name == "xz-utils":
		return lzmaAlternatives()
	case strings.HasPrefix(p.Name, "openjdk-"):
		return javaAlternatives(p)
	}
	return nil
}

// procpsAlternatives gives programs with the package's suffix their plain names.
func procpsAlternatives(t *tree) []alternative {
	var all []alternative
	for _, path := range t.glob("usr/bin", "*.procps") {
		name := strings.TrimSuffix(pathpkg.Base(path), ".procps")
		all = append(all, alternative{link: "/usr/bin/" + name, name: name, path: "/" + path, priority: 50})
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
