// Package interpolate puts the values of ((variables)) into trees, as the bosh
// CLI does, and finds who refers to which. It is pure, and what it makes is
// bounded like whatever package tree reads.
package interpolate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/pattern"
	"cupola/server/bosh/ops"
	"cupola/server/bosh/tree"
)

// reference is BOSH's pattern, with the slashes of CredHub's names and one
// space inside.
var reference = pattern.Lazy(`\(\( ?(!?[-/.\w\pL]+) ?\)\)`)

// Values are what variables stand for, by name.
type Values = tree.Map

// Report says what became of the variables. Names are sorted, without the
// fields that were asked of them.
type Report struct {
	Used    []string // values that something refers to
	Unused  []string // values that nothing refers to
	Missing []string // names that are referred to and have no value; their references were left
}

// Apply returns a tree with all values in it; n stays as it is. A value that
// is all of a text keeps its type. Keys are interpolated too, values are not.
func Apply(n *yaml.Node, values Values) (*yaml.Node, Report, error) {
	p := &pass{values: values, nodes: map[string]*yaml.Node{}, found: map[string]*yaml.Node{}, used: map[string]bool{}, missing: map[string]bool{}}
	out, err := p.node(n)
	if err == nil {
		out, err = tree.Copy(out)
	}
	return out, p.report(), err
}

// pass is one way through a tree.
type pass struct {
	values        Values
	nodes         map[string]*yaml.Node // values, by name
	found         map[string]*yaml.Node // by reference, fields included
	used, missing map[string]bool
	bytes         int // that were put into texts
}

func (p *pass) report() Report {
	r := Report{Used: slices.Sorted(maps.Keys(p.used)), Missing: slices.Sorted(maps.Keys(p.missing))}
	for name := range p.values {
		if !p.used[name] {
			r.Unused = append(r.Unused, name)
		}
	}
	slices.Sort(r.Unused)
	return r
}

// node returns n or, where something in it changes, another.
func (p *pass) node(n *yaml.Node) (*yaml.Node, error) {
	if n.Kind == yaml.ScalarNode {
		return p.scalar(n)
	}
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		var err error
		if out.Content[i], err = p.node(c); err != nil {
			return nil, err
		}
	}
	if n.Kind == yaml.MappingNode {
		return &out, checkKeys(&out)
	}
	return &out, nil
}

// checkKeys refuses keys that values made to something else than text, or to
// the same text.
func checkKeys(m *yaml.Node) error {
	have := make(map[string]bool, len(m.Content)/2)
	for i := 0; i+1 < len(m.Content); i += 2 {
		switch key := m.Content[i]; {
		case key.Kind != yaml.ScalarNode:
			return fmt.Errorf("line %d: %s cannot be a key", m.Line, tree.Kind(key))
		case have[key.Value]:
			return fmt.Errorf("line %d: the key %q is there twice, with the variables in it", m.Line, key.Value)
		default:
			have[key.Value] = true
		}
	}
	return nil
}

func (p *pass) scalar(n *yaml.Node) (*yaml.Node, error) {
	if !strings.Contains(n.Value, "((") || n.ShortTag() != "!!str" {
		return n, nil
	}
	matches := reference().FindAllStringSubmatchIndex(n.Value, -1)
	if len(matches) == 1 && matches[0][0] == 0 && matches[0][1] == len(n.Value) {
		return p.whole(n, n.Value[matches[0][2]:matches[0][3]])
	}
	var b strings.Builder
	at := 0
	for _, m := range matches {
		v, err := p.lookup(n.Value[m[2]:m[3]])
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		s, err := within(v, strings.TrimPrefix(n.Value[m[2]:m[3]], "!"))
		if err != nil {
			return nil, err
		}
		if p.bytes += len(s); p.bytes > tree.MaxTextBytes {
			return nil, fmt.Errorf("variables come to more than %d bytes of text", tree.MaxTextBytes)
		}
		b.WriteString(n.Value[at:m[0]])
		b.WriteString(s)
		at = m[1]
	}
	if at == 0 {
		return n, nil
	}
	b.WriteString(n.Value[at:])
	out := tree.Text(b.String())
	out.Line, out.Column = n.Line, n.Column
	return out, nil
}

// whole is the value of a text that is one reference.
func (p *pass) whole(n *yaml.Node, name string) (*yaml.Node, error) {
	v, err := p.lookup(name)
	if v == nil || err != nil {
		return n, err
	}
	out := *v
	out.Line, out.Column = n.Line, n.Column
	return &out, nil
}

// within is a value as part of a text.
func within(v *yaml.Node, name string) (string, error) {
	if v.Kind == yaml.ScalarNode && (v.ShortTag() == "!!str" || v.ShortTag() == "!!int") {
		return v.Value, nil
	}
	text := fmt.Sprint(tree.Value(v))
	return "", fmt.Errorf("Invalid type '%s' for value '%v' and variable '%s'. Supported types for interpolation within a string are integers and strings.", //nolint:revive // the bosh CLI's words
		ops.GoType(v), text[:min(len(text), 100)], name)
}

// lookup is the value of what stands between parentheses; nil when there is none.
func (p *pass) lookup(ref string) (*yaml.Node, error) {
	ref = strings.TrimPrefix(ref, "!")
	if v, ok := p.found[ref]; ok {
		return v, nil
	}
	name, fields := p.split(ref)
	if _, ok := p.values[name]; !ok {
		p.missing[name] = true
		return nil, nil
	}
	p.used[name] = true
	v, err := p.value(name)
	if err != nil {
		return nil, err
	}
	if len(fields) > 0 {
		if v, err = ops.FindField(v, fields); err != nil {
			return nil, fmt.Errorf("Finding variable '%s': %w", ref, err) //nolint:revive // the bosh CLI's words
		}
	}
	p.found[ref] = v
	return v, nil
}

func (p *pass) value(name string) (*yaml.Node, error) {
	if v, ok := p.nodes[name]; ok {
		return v, nil
	}
	v, err := tree.Of(p.values[name])
	if err != nil {
		return nil, fmt.Errorf("the value of the variable %q: %w", name, err)
	}
	p.nodes[name] = v
	return v, nil
}

// split parts a reference into a name and the fields that are asked of it.
// A name may have a slash; otherwise what follows the last one is a field.
func (p *pass) split(ref string) (name string, fields []string) {
	name, fields = split(ref)
	if _, ok := p.values[name]; ok {
		return name, fields
	}
	if of, last := parent(name); of != "" {
		if m, ok := p.values[of].(map[string]any); ok && m[last] != nil {
			return of, append([]string{last}, fields...)
		}
	}
	return name, fields
}

// split parts a reference, without its parentheses, into the name of a
// variable and the fields that are asked of it.
func split(ref string) (name string, fields []string) {
	parts := strings.Split(strings.TrimPrefix(ref, "!"), ".")
	return parts[0], parts[1:]
}

// parent parts a name at its last slash.
func parent(name string) (of, last string) {
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		return name[:i], name[i+1:]
	}
	return "", ""
}
