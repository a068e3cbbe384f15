// Package ops applies BOSH's ops files to trees: replace, remove and test, by
// paths. Its errors are those of the bosh CLI. It is pure, and bounded like
// whatever package tree reads.
package ops

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// Op is one operation.
type Op struct {
	Type   string // replace, remove or test
	Path   string
	Value  *yaml.Node // of replace and test
	Error  string     // begins the error, if it fails
	Absent bool       // of test: nothing is there

	tokens []token
}

// maxSteps bounds how many items all operations together look at.
const maxSteps = 5_000_000

// Parse reads an ops file: a list of operations. An empty file has none. Other
// keys beside those of an operation have no effect, as in the bosh CLI.
func Parse(text []byte) ([]Op, error) {
	n, err := tree.LoadBOSH(text)
	if err != nil {
		return nil, err
	}
	return decodeAll(n)
}

// decodeAll reads the operations of a tree.
func decodeAll(n *yaml.Node) ([]Op, error) {
	if tree.IsNull(n) {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("expected a list of operations, got %s", tree.Kind(n))
	}
	all := make([]Op, 0, len(n.Content))
	for i, item := range n.Content {
		op, err := decode(item)
		switch {
		case errors.Is(err, errUnknown):
			return nil, boshError("Unknown operation [%d] with type '%s' (line %d)", i, op.Type, item.Line)
		case err != nil:
			return nil, fmt.Errorf("%s operation [%d]: %w (line %d)", title(op.Type), i, err, item.Line)
		}
		all = append(all, op)
	}
	return all, nil
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

var errUnknown = errors.New("unknown operation")

func decode(n *yaml.Node) (op Op, err error) {
	op = Op{Type: scalar(n, "type"), Path: scalar(n, "path"), Error: scalar(n, "error"), Value: tree.Get(n, "value"), Absent: scalar(n, "absent") == "true"}
	if n.Kind != yaml.MappingNode || op.Type != "replace" && op.Type != "remove" && op.Type != "test" {
		return op, errUnknown
	}

	switch {
	case tree.Get(n, "path") == nil:
		return op, boshError("Missing path")
	case op.Type == "remove" && op.Value != nil:
		return op, boshError("Cannot specify value")
	case op.Type == "replace" && op.Value == nil:
		return op, boshError("Missing value")
	case op.Type == "test" && op.Value == nil && tree.Get(n, "absent") == nil:
		return op, boshError("Missing value or absent")
	}
	if op.tokens, err = parsePath(op.Path); err != nil {
		return op, boshError("Invalid path: %w", err)
	}
	return op, nil
}

func scalar(n *yaml.Node, key string) string {
	if v := tree.Get(n, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// Apply returns doc with all operations made, one after the other; doc stays
// as it is. What operations put in has no lines.
func Apply(doc *yaml.Node, all []Op) (*yaml.Node, error) {
	doc, err := tree.Copy(doc)
	if err != nil {
		return nil, err
	}
	steps := 0
	for _, op := range all {
		w := &walk{tokens: op.tokens, steps: &steps}
		if doc, err = w.apply(doc, op); err != nil {
			if op.Error != "" {
				err = boshError("Error '%s': %w", op.Error, err)
			}
			return nil, err
		}
	}
	return tree.Copy(doc)
}

func (w *walk) apply(doc *yaml.Node, op Op) (*yaml.Node, error) {
	switch op.Type {
	case "replace":
		value, err := tree.Copy(op.Value)
		if err != nil {
			return nil, err
		}
		return w.replace(doc, tree.Unplaced(value))
	case "remove":
		return doc, w.remove(doc)
	}
	return doc, w.test(doc, op)
}

// Find returns what a path leads to.
func Find(doc *yaml.Node, path string) (*yaml.Node, error) {
	tokens, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	steps := 0
	return (&walk{tokens: tokens, steps: &steps}).find(doc)
}
