// Package tree parses untrusted YAML into plain trees: mappings, sequences and
// scalars, without anchors, aliases and merge keys. The result is bounded in
// size and depth. It is pure.
package tree

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of a document. The largest deployment manifests in use have about
// 10,000 nodes in 120 kB.
const (
	MaxBytes     = 1 << 20  // of the text
	maxNodes     = 200_000  // with aliases resolved
	MaxTextBytes = 16 << 20 // of all scalars, with aliases resolved
	MaxDepth     = 64
)

// maxDoubles bounds how many doubled keys one error names.
const maxDoubles = 20

// Load reads one YAML document. Its nodes keep their lines; those of an alias
// have the lines of what it names. Of an empty document the tree is a null.
func Load(text []byte) (*yaml.Node, error) { return load(text, expansion{}) }

// LoadBOSH is Load with YAML 1.1's booleans, like yes and off, which the bosh CLI
// reads in manifests, ops files and variables.
func LoadBOSH(text []byte) (*yaml.Node, error) { return load(text, expansion{booleans: true}) }

func load(text []byte, e expansion) (*yaml.Node, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the document has %d bytes; at most %d are read", len(text), MaxBytes)
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return Null(), nil
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var more yaml.Node
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one YAML document")
	}
	if len(doc.Content) != 1 {
		return Null(), nil
	}
	n, err := e.copy(doc.Content[0], 0)
	if err != nil {
		return nil, err
	}
	if len(e.doubles) > 0 {
		return nil, errors.New(strings.Join(e.doubles, "; "))
	}
	return n, nil
}

// Copy returns a tree that shares nothing with n and passes the limits, or an
// error that says which it breaks.
func Copy(n *yaml.Node) (*yaml.Node, error) {
	e := expansion{}
	return e.copy(n, 0)
}

// Unplaced forgets the lines of a tree: they are of another file than the one
// that it becomes a part of.
func Unplaced(n *yaml.Node) *yaml.Node {
	n.Line, n.Column = 0, 0
	for _, c := range n.Content {
		Unplaced(c)
	}
	return n
}

// Null is a new null.
func Null() *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"} }

// Text is a new string.
func Text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.Contains(s, "\n") {
		n.Style = yaml.LiteralStyle
	}
	if booleans[s] != "" || len(s) == 1 && strings.Contains("yYnN", s) { // the bosh CLI takes y and n for booleans, too
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// IsNull reports whether n is a null, or is not there.
func IsNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// Get returns the value of a key of a mapping, or nil.
func Get(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// Kind says in words what n is: a map, a list, text, a number, true or false,
// or nothing.
func Kind(n *yaml.Node) string {
	if n == nil {
		return "nothing"
	}
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "text"
}
