package ops

import (
	"slices"
	"strconv"
	"strings"

	"cupola/server/bosh/tree"
)

// kind is what a token of a path stands for.
type kind int

const (
	key      kind = iota // /key: of a map
	index                // /0, /-1: of a list
	matching             // /name=value: the one item of a list
	after                // /-: behind the last item of a list
)

// token is one part of a path.
type token struct {
	kind       kind
	key, value string
	index      int
	optional   bool     // it, or one left of it, ends in ?
	modifiers  []string // prev, next, before, after
}

// maxTokens bounds a path: trees are not deeper.
const maxTokens = tree.MaxDepth + 2

// parsePath reads a path; "" is the whole document.
func parsePath(path string) ([]token, error) {
	if path == "" {
		return nil, nil
	}
	if !strings.HasPrefix(path, "/") {
		return nil, boshError("Expected to start with '/'")
	}
	parts := strings.Split(path[1:], "/")
	if len(parts) > maxTokens {
		return nil, boshError("Expected at most %d tokens", maxTokens)
	}
	var tokens []token
	optional := false
	for i, part := range parts {
		t, err := parseToken(part, i == len(parts)-1)
		if err != nil {
			return nil, err
		}
		optional = optional || t.optional
		t.optional = optional && t.kind != index && t.kind != after
		tokens = append(tokens, t)
	}
	return tokens, nil
}

func parseToken(part string, last bool) (token, error) {
	pieces := strings.Split(part, ":")
	text, modifiers := pieces[0], pieces[1:]
	for _, m := range modifiers {
		if !slices.Contains([]string{"prev", "next", "before", "after"}, m) {
			return token{}, boshError("Expected to find one of the following modifiers: 'prev', 'next', 'before', or 'after' but found '%s'", m)
		}
	}
	if last && text == "-" {
		if len(modifiers) > 0 {
			return token{}, boshError("Expected not to find any modifiers with after last index token")
		}
		return token{kind: after}, nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		return token{kind: index, index: n, modifiers: modifiers}, nil
	}
	text, optional := strings.CutSuffix(text, "?")
	if k, v, ok := strings.Cut(text, "="); ok {
		return token{kind: matching, key: tree.Unescape(k), value: tree.Unescape(v), optional: optional, modifiers: modifiers}, nil
	}
	if len(modifiers) > 0 {
		return token{}, boshError("Expected not to find any modifiers with key token")
	}
	return token{kind: key, key: tree.Unescape(text), optional: optional}, nil
}

// escapeToken writes a key or a value as the bosh CLI's errors show it. Unlike
// tree.Escape it leaves ? and = as they are.
var escapeToken = strings.NewReplacer("~", "~0", "/", "~1", ":", "~7").Replace

// pathText writes a path as errors show it: only the first ? is shown.
func pathText(tokens []token) string {
	var b strings.Builder
	optional := false
	for _, t := range tokens {
		b.WriteByte('/')
		switch t.kind {
		case key:
			b.WriteString(escapeToken(t.key))
		case matching:
			b.WriteString(escapeToken(t.key) + "=" + escapeToken(t.value))
		case index:
			b.WriteString(strconv.Itoa(t.index))
		case after:
			b.WriteByte('-')
		}
		if t.optional && !optional {
			b.WriteByte('?')
			optional = true
		}
		for _, m := range t.modifiers {
			b.WriteString(":" + m)
		}
	}
	return b.String()
}
