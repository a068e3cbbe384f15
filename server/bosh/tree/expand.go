package tree

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// expansion copies a tree with its aliases and merge keys resolved, and counts
// what that comes to.
type expansion struct {
	booleans     bool // of YAML 1.1 are read, too
	nodes, bytes int
	within       []*yaml.Node // the aliased nodes that are being copied
	doubles      []string
}

func (e *expansion) spend(n *yaml.Node, depth int) error {
	e.nodes++
	e.bytes += len(n.Value)
	switch {
	case e.nodes > maxNodes:
		return fmt.Errorf("the document has more than %d values, with its aliases resolved", maxNodes)
	case e.bytes > MaxTextBytes:
		return fmt.Errorf("the document has more than %d bytes of text, with its aliases resolved", MaxTextBytes)
	case depth > MaxDepth:
		return fmt.Errorf("line %d: nested deeper than %d levels", n.Line, MaxDepth)
	}
	return nil
}

func (e *expansion) copy(n *yaml.Node, depth int) (*yaml.Node, error) {
	if err := e.spend(n, depth); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return e.alias(n, depth)
	case yaml.MappingNode:
		return e.mapping(n, depth)
	case yaml.SequenceNode:
		return e.sequence(n, depth)
	}
	return e.scalar(n)
}

// scalar copies a value. A plain one may be a boolean of YAML 1.1; a text that
// looks like one is quoted.
func (e *expansion) scalar(n *yaml.Node) (*yaml.Node, error) {
	s := &yaml.Node{Kind: yaml.ScalarNode, Tag: n.Tag, Value: n.Value, Style: n.Style &^ yaml.TaggedStyle, Line: n.Line, Column: n.Column}
	tagged := n.Style&yaml.TaggedStyle != 0
	if tagged && n.ShortTag() != "!!str" {
		return s, asTagged(s)
	}
	value, ok := booleans[n.Value]
	if !ok || s.Style != 0 || n.ShortTag() != "!!str" {
		return s, nil
	}
	if e.booleans && !tagged {
		s.Tag, s.Value = "!!bool", value
	} else if tagged {
		s.Style = yaml.DoubleQuotedStyle
	}
	return s, nil
}

// asTagged makes s what its tag says, even if it is quoted: !!int "7" is a number.
func asTagged(s *yaml.Node) error {
	switch s.ShortTag() {
	case "!!null", "!!bool", "!!int", "!!float":
	default:
		return nil
	}
	s.Style = 0
	if value, ok := booleans[s.Value]; ok {
		s.Value = value
	}
	var v any
	if err := s.Decode(&v); err != nil {
		return fmt.Errorf("line %d: %s", s.Line, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if v == nil {
		s.Value = "null"
	}
	return nil
}

// booleans are those that YAML 1.1 has and YAML 1.2 has not, as the bosh CLI
// reads them (gopkg.in/yaml.v2); only y and n stay text, as the director has them.
var booleans = map[string]string{
	"yes": "true", "Yes": "true", "YES": "true", "on": "true", "On": "true", "ON": "true",
	"no": "false", "No": "false", "NO": "false", "off": "false", "Off": "false", "OFF": "false",
}

func (e *expansion) alias(n *yaml.Node, depth int) (*yaml.Node, error) {
	if slices.Contains(e.within, n.Alias) {
		return nil, fmt.Errorf("line %d: *%s contains itself", n.Line, n.Value)
	}
	e.within = append(e.within, n.Alias)
	defer func() { e.within = e.within[:len(e.within)-1] }()
	return e.copy(n.Alias, depth)
}

func (e *expansion) sequence(n *yaml.Node, depth int) (*yaml.Node, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: n.Style & yaml.FlowStyle, Line: n.Line, Column: n.Column}
	for _, item := range n.Content {
		c, err := e.copy(item, depth+1)
		if err != nil {
			return nil, err
		}
		list.Content = append(list.Content, c)
	}
	return list, nil
}

func (e *expansion) mapping(n *yaml.Node, depth int) (*yaml.Node, error) {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: n.Style & yaml.FlowStyle, Line: n.Line, Column: n.Column}
	var merged []*yaml.Node
	have := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := e.key(n.Content[i], depth+1)
		if err != nil {
			return nil, err
		}
		value, err := e.copy(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if n.Content[i].ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if have[key.Value] {
			e.double(key)
			continue
		}
		have[key.Value] = true
		m.Content = append(m.Content, key, value)
	}
	return m, merge(m, merged, have)
}

func (e *expansion) double(key *yaml.Node) {
	if len(e.doubles) < maxDoubles {
		e.doubles = append(e.doubles, fmt.Sprintf("line %d: the key %q is there twice", key.Line, key.Value))
	}
}

func (e *expansion) key(n *yaml.Node, depth int) (*yaml.Node, error) {
	booleans := e.booleans
	e.booleans = false // keys are text
	defer func() { e.booleans = booleans }()
	key, err := e.copy(n, depth)
	if err != nil {
		return nil, err
	}
	if key.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("line %d: %s cannot be a key", n.Line, Kind(key))
	}
	return key, nil
}

// merge adds to m what the values of its merge keys have and m has not.
func merge(m *yaml.Node, merged []*yaml.Node, have map[string]bool) error {
	for _, from := range merged {
		if from.Kind == yaml.SequenceNode {
			if err := merge(m, from.Content, have); err != nil {
				return err
			}
			continue
		}
		if from.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: << takes a map, got %s", from.Line, Kind(from))
		}
		for i := 0; i+1 < len(from.Content); i += 2 {
			if key := from.Content[i]; !have[key.Value] {
				have[key.Value] = true
				m.Content = append(m.Content, key, from.Content[i+1])
			}
		}
	}
	return nil
}
