// Package ops applies BOSH's ops files to trees: replace, remove and test, by
// paths. Its errors are those of the bosh CLI. It is pure, and bounded like
// whatever package tree reads.
package ops

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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

	place  string // in its file; begins the error, before Error
	tokens []token
}

// maxSteps bounds how many items all operations together look at.
const maxSteps = 5_000_000

// Parse reads an ops file: a list of operations. An empty file has none. Other
// keys besides those of an operation have no effect, as in the bosh CLI.
func Parse(text []byte) ([]Op, error) {
	n, err := tree.LoadBOSH(text)
	if err != nil {
		return nil, err
	}
	return decodeAll(n, "")
}

// ParseFile is Parse for a file that has a name. Errors of its operations begin with
// their place in it, as those of the bosh CLI.
func ParseFile(name string, text []byte) ([]Op, error) {
	n, err := tree.LoadBOSH(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	all, err := decodeAll(n, name)
	if err != nil {
		return nil, boshError("Building ops: %w", err)
	}
	return all, nil
}

// decodeAll reads the operations of a tree; file is where it is from, or "".
func decodeAll(n *yaml.Node, file string) ([]Op, error) {
	if tree.IsNull(n) {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		err := fmt.Errorf("expected a list of operations, got %s", tree.Kind(n))
		if file != "" {
			err = fmt.Errorf("%s: %w", file, err)
		}
		return nil, err
	}
	all := make([]Op, 0, len(n.Content))
	for i, item := range n.Content {
		place := fmt.Sprintf("operation [%d]", i)
		if file != "" {
			place += " in " + file
		}
		d, err := read(item)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		op, err := d.op()
		if file != "" {
			op.place = place + " failed"
		}
		switch {
		case errors.Is(err, errUnknown):
			return nil, boshError("Unknown operation [%d] with type '%s' within\n%s", i, op.Type, d.shown(op))
		case err != nil:
			return nil, boshError("%s operation [%d]: %w within\n%s", title(op.Type), i, err, d.shown(op))
		}
		all = append(all, op)
	}
	return all, nil
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

var errUnknown = errors.New("unknown operation")

// definition is an operation as a file has it; nil is what it leaves out.
type definition struct {
	Type   string
	Path   *string
	Value  *yaml.Node `yaml:"-"`
	Absent *bool
	Error  string
}

// read reads an operation. One that is null has no type.
func read(n *yaml.Node) (d definition, err error) {
	if tree.IsNull(n) {
		return d, nil
	}
	if n.Kind != yaml.MappingNode {
		return d, fmt.Errorf("expected a map, got %s", tree.Kind(n))
	}
	if err := n.Decode(&d); err != nil {
		var wrong *yaml.TypeError
		if errors.As(err, &wrong) {
			return d, errors.New(strings.Join(wrong.Errors, ", "))
		}
		return d, err
	}
	if v := tree.Get(n, "value"); v != nil && !isLeftOut(v) {
		d.Value = v
	}
	return d, nil
}

// isLeftOut reports whether a value is as good as none: the bosh CLI's library for YAML
// passes over ~ and null, but not over Null and NULL.
func isLeftOut(v *yaml.Node) bool {
	return tree.IsNull(v) && v.Value != "Null" && v.Value != "NULL"
}

func (d definition) op() (op Op, err error) {
	op = Op{Type: d.Type, Value: d.Value, Error: d.Error, Absent: d.Absent != nil && *d.Absent}
	switch {
	case op.Type != "replace" && op.Type != "remove" && op.Type != "test":
		return op, errUnknown
	case d.Path == nil:
		return op, boshError("Missing path")
	case op.Type == "remove" && op.Value != nil:
		return op, boshError("Cannot specify value")
	case op.Type == "replace" && op.Value == nil:
		return op, boshError("Missing value")
	case op.Type == "test" && op.Value == nil && d.Absent == nil:
		return op, boshError("Missing value or absent")
	}
	op.Path = *d.Path
	if op.tokens, err = parsePath(op.Path); err != nil {
		return op, boshError("Invalid path: %w", err)
	}
	return op, nil
}

// shown is the operation as the bosh CLI's errors show it.
func (d definition) shown(op Op) string {
	shown := struct {
		Type   string  `json:",omitempty"`
		Path   *string `json:",omitempty"`
		Value  string  `json:",omitempty"`
		Absent *bool   `json:",omitempty"`
		Error  string  `json:",omitempty"`
	}{Type: d.Type, Path: d.Path, Absent: d.Absent, Error: cmp.Or(op.place, d.Error)}
	if d.Value != nil {
		shown.Value = "<redacted>"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(shown) != nil {
		return "<unknown>"
	}
	return strings.TrimSuffix(b.String(), "\n")
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
			return nil, op.fault(err)
		}
	}
	return tree.Copy(doc)
}

// fault is the error of an operation that failed.
func (op *Op) fault(err error) error {
	for _, text := range []string{op.Error, op.place} {
		if text != "" {
			err = boshError("Error '%s': %w", text, err)
		}
	}
	return err
}

func (w *walk) apply(doc *yaml.Node, op Op) (*yaml.Node, error) {
	switch op.Type {
	case "replace":
		value, err := tree.Copy(op.Value)
		if err != nil {
			return nil, err
		}
		return w.replace(doc, tree.Written(tree.Unplaced(value)))
	case "remove":
		return doc, w.remove(doc)
	}
	return doc, w.test(doc, op)
}

// CheckPath reports what is wrong with a path.
func CheckPath(path string) error {
	_, err := parsePath(path)
	return err
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

// FindField returns what a variable's fields lead to in its value. A number is an
// index of a list, or a key of a map.
func FindField(value *yaml.Node, fields []string) (*yaml.Node, error) {
	tokens, err := parsePath("/" + strings.Join(fields, "/"))
	if err != nil {
		return nil, err
	}
	steps := 0
	n, err := (&walk{tokens: tokens, steps: &steps}).find(value)
	if err == nil {
		return n, nil
	}
	for i, t := range tokens {
		if t.kind == index {
			tokens[i] = token{kind: key, key: strconv.Itoa(t.index)}
		}
	}
	return (&walk{tokens: tokens, steps: &steps}).find(value)
}
