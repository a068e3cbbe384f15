package erb

import (
	"strconv"
	"strings"

	"cupola/runtime/pattern"
)

// expression is what a simple template prints: a property, or a path of names
// and indices below the spec or a link.
type expression struct {
	link     string // the link it is of; "" for none
	property string // of the link, else of the job; "" for none
	fallback any
	optional bool     // fallback was given
	path     []string // below the spec ("spec", "name", "index"), or below the link
}

const (
	quoted  = `(?:"([^"\\#\n]*)"|'([^'\\\n]*)')`
	literal = `((?:"[^"\\#\n]*"|'[^'\\\n]*'|-?(?:0|[1-9][0-9]{0,17})|true|false|nil|\[\]|\{\}))`
	call    = `p\(\s*` + quoted + `\s*(?:,\s*` + literal + `\s*)?\)`
	names   = `((?:\.[a-z_][a-z0-9_]*|\[[0-9]{1,6}\])+)`
)

var (
	propertyRule = pattern.Lazy(`^` + call + `$`)
	linkRule     = pattern.Lazy(`^link\(\s*` + quoted + `\s*\)\.` + call + `$`)
	linkPathRule = pattern.Lazy(`^link\(\s*` + quoted + `\s*\)(\.address|\.instances\[[0-9]{1,6}\]\.[a-z]+)$`)
	specRule     = pattern.Lazy(`^(?:spec` + names + `|(name|index))$`)
	nameRule     = pattern.Lazy(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	stepRule     = pattern.Lazy(`[a-z_][a-z0-9_]*|[0-9]+`)
)

// parseExpression reads the Ruby of a simple template; false when it is more.
func parseExpression(code string) (*expression, bool) {
	code = strings.TrimSpace(code)
	if m := propertyRule().FindStringSubmatch(code); m != nil {
		return lookup("", m[1]+m[2], m[3])
	}
	if m := linkRule().FindStringSubmatch(code); m != nil && nameRule().MatchString(m[1]+m[2]) {
		return lookup(m[1]+m[2], m[3]+m[4], m[5])
	}
	if m := linkPathRule().FindStringSubmatch(code); m != nil && nameRule().MatchString(m[1]+m[2]) {
		return &expression{link: m[1] + m[2], path: stepRule().FindAllString(m[3], -1)}, true
	}
	if m := specRule().FindStringSubmatch(code); m != nil {
		if m[2] != "" {
			return &expression{path: []string{m[2]}}, true
		}
		return &expression{path: append([]string{"spec"}, stepRule().FindAllString(m[1], -1)...)}, true
	}
	return nil, false
}

func lookup(link, property, fallback string) (*expression, bool) {
	if !nameRule().MatchString(property) {
		return nil, false
	}
	e := &expression{link: link, property: property, optional: fallback != ""}
	switch fallback {
	case "", "nil":
	case "true", "false":
		e.fallback = fallback == "true"
	case "[]":
		e.fallback = []any{}
	case "{}":
		e.fallback = map[string]any{}
	default:
		if n, err := strconv.Atoi(fallback); err == nil {
			e.fallback = n
		} else {
			e.fallback = fallback[1 : len(fallback)-1]
		}
	}
	return e, true
}
