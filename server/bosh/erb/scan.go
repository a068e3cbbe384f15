package erb

import (
	"strings"
	"unicode/utf8"

	"cupola/runtime/pattern"
)

// part is a piece of a simple template: text, or what to print.
type part struct {
	text  string
	print *expression // nil for text
	line  int         // from 1
}

// magic is a comment that would change how Ruby reads the template.
var magic = pattern.Lazy(`coding\s*[=:]|frozen[-_]string`)

// scan takes a simple template apart; false for one that only Ruby can render,
// or tell what is wrong with. It is ERB with trim mode "-".
func scan(text string) ([]part, bool) {
	if !strings.Contains(text, "<%") {
		return []part{{text: text}}, true
	}
	if !utf8.ValidString(text) {
		return nil, false
	}
	var parts []part
	for line := 1; text != ""; {
		before, tag, found := strings.Cut(text, "<%")
		parts = append(parts, part{text: before})
		line += strings.Count(before, "\n")
		if !found {
			break
		}
		if after, escaped := strings.CutPrefix(tag, "%"); escaped {
			parts = append(parts, part{text: "<%"})
			text = after
			continue
		}
		inner, rest, ok := tagEnd(tag)
		if !ok {
			return nil, false
		}
		p, ok := tagPart(inner, line)
		if !ok {
			return nil, false
		}
		parts = append(parts, p)
		line += strings.Count(text[len(before):len(text)-len(rest)], "\n")
		text = rest
	}
	return parts, true
}

// tagEnd splits at the end of a tag, and swallows the newline after a "-%>".
func tagEnd(tag string) (inner, rest string, ok bool) {
	inner, rest, found := strings.Cut(tag, "%>")
	if !found || strings.HasSuffix(inner, "%") {
		return "", "", false
	}
	if trimmed, trims := strings.CutSuffix(inner, "-"); trims {
		if strings.HasPrefix(rest, "\r\n") { // not every Ruby takes it for a newline
			return "", "", false
		}
		return trimmed, strings.TrimPrefix(rest, "\n"), true
	}
	return inner, rest, true
}

func tagPart(inner string, line int) (part, bool) {
	if comment, is := strings.CutPrefix(inner, "#"); is {
		return part{}, !magic().MatchString(comment)
	}
	code, is := strings.CutPrefix(inner, "=")
	if !is {
		return part{}, false
	}
	e, ok := parseExpression(code)
	return part{print: e, line: line}, ok
}
