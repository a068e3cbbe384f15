package redact

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Redacted stands for a credential in a line of a manifest, as in the director's diff.
const Redacted = "<redacted>"

// mark separates a redacted line from its text; YAML has no such character.
const mark = "\x00"

// Manifest redacts the credentials in a manifest. Each of its lines stays one line,
// with its own text behind a mark, so that lines with different credentials differ.
// Shown removes that text.
func Manifest(text string) (string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return "", err
	}
	var w walk
	w.node(&root, false)
	lines := strings.Split(text, "\n")
	for n, s := range w.all {
		if !s.secret {
			continue
		}
		end := len(lines)
		if n+1 < len(w.all) {
			end = w.all[n+1].line - 1
		}
		hide(lines, s.line-1, s.column-1)
		for at := s.line; at < end; at++ {
			hide(lines, at, len(lines[at])-len(strings.TrimLeft(lines[at], " ")))
		}
	}
	return strings.Join(lines, "\n"), nil
}

// Shown is a line of Manifest without the text behind the mark.
func Shown(line string) string {
	line, _, _ = strings.Cut(line, mark)
	return line
}

// hide redacts a line from a column on, unless it is empty or redacted.
func hide(lines []string, at, column int) {
	runes := []rune(lines[at])
	if len(runes) > column && !strings.Contains(lines[at], mark) {
		lines[at] = string(runes[:column]) + Redacted + mark + lines[at]
	}
}

// scalar is where a key or a value begins, counted from 1.
type scalar struct {
	line, column int
	secret       bool
}

// walk collects the scalars of a document in their order.
type walk struct{ all []scalar }

func (w *walk) node(n *yaml.Node, named bool) {
	switch n.Kind {
	case yaml.MappingNode:
		variable := named || Named(entry(n, "name"))
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			w.node(n.Content[i], false)
			w.node(n.Content[i+1], named || Named(key) || variable && key == "value")
		}
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, item := range n.Content {
			w.node(item, named)
		}
	case yaml.ScalarNode, yaml.AliasNode:
		secret := named && n.Kind == yaml.ScalarNode && n.Tag != "!!null" && !harmless().MatchString(n.Value)
		w.all = append(w.all, scalar{n.Line, n.Column, secret})
	}
}

// entry is the value of a key; "" if there is none.
func entry(m *yaml.Node, key string) string {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1].Value
		}
	}
	return ""
}
