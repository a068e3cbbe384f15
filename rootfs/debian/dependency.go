package debian

import (
	"fmt"
	"strings"
)

// A relation is one "name (op version)" of a dependency field. An empty op asks
// for any version.
type relation struct {
	name    string
	op      string
	version string
}

func (r relation) String() string {
	if r.op == "" {
		return r.name
	}
	return fmt.Sprintf("%s (%s %s)", r.name, r.op, r.version)
}

// allows reports whether version satisfies the relation.
func (r relation) allows(version string) bool {
	if r.op == "" {
		return true
	}
	c := compareVersions(version, r.version)
	switch r.op {
	case "=":
		return c == 0
	case "<<":
		return c < 0
	case "<=", "<":
		return c <= 0
	case ">=", ">":
		return c >= 0
	case ">>":
		return c > 0
	}
	return false
}

// A clause is satisfied by any one of its relations.
type clause []relation

func (c clause) String() string {
	parts := make([]string, len(c))
	for i, r := range c {
		parts[i] = r.String()
	}
	return strings.Join(parts, " | ")
}

// parseClauses reads a dependency field: clauses by comma, alternatives by bar.
// Architecture qualifiers ("python3:any") are dropped, for one architecture is
// all a tree has.
func parseClauses(text string) ([]clause, error) {
	var all []clause
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		var c clause
		for alt := range strings.SplitSeq(part, "|") {
			r, err := parseRelation(alt)
			if err != nil {
				return nil, err
			}
			c = append(c, r)
		}
		all = append(all, c)
	}
	return all, nil
}

func parseRelation(text string) (relation, error) {
	name, version, versioned := strings.Cut(strings.TrimSpace(text), "(")
	name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
	if name == "" || strings.ContainsAny(name, " \t\n[<)") {
		return relation{}, fmt.Errorf("no package name in relation %.60q", text)
	}
	if !versioned {
		return relation{name: name}, nil
	}
	version, rest, closed := strings.Cut(version, ")")
	version = strings.TrimSpace(version)
	n := strings.IndexFunc(version, func(r rune) bool { return !strings.ContainsRune("<=>", r) })
	if !closed || strings.TrimSpace(rest) != "" || n < 1 {
		return relation{}, fmt.Errorf("no version in relation %.60q", text)
	}
	r := relation{name: name, op: version[:n], version: strings.TrimSpace(version[n:])}
	switch r.op {
	case "=", "<<", "<=", ">=", ">>", "<", ">":
		return r, nil
	}
	return relation{}, fmt.Errorf("no such operator %q in relation %.60q", r.op, text)
}
