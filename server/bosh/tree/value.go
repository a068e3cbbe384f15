package tree

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Value returns a tree as map[string]any, []any, string, int, int64, uint64,
// float64, bool and nil. A date is the string that was written, and so is a
// number that JSON could not hold.
func Value(n *yaml.Node) any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = Value(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			list = append(list, Value(c))
		}
		return list
	}
	return scalar(n)
}

func scalar(n *yaml.Node) any {
	var v any
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!int", "!!float", "!!bool", "!!binary":
		if n.Decode(&v) != nil {
			return n.Value
		}
	}
	switch x := v.(type) {
	case int, int64, uint64, bool, string:
		return x
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return x
		}
	}
	return n.Value
}

// Of returns the tree of a value as Value returns it; the keys of maps are
// sorted. It passes the limits or is an error.
func Of(v any) (*yaml.Node, error) {
	n, err := of(v, 0)
	if err != nil {
		return nil, err
	}
	return Copy(n)
}

func of(v any, depth int) (*yaml.Node, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", MaxDepth)
	}
	switch x := v.(type) {
	case string:
		return Text(x), nil
	case float64:
		return ofFloat(x), nil
	case map[string]any:
		return ofMap(x, depth)
	case []any:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range x {
			c, err := of(item, depth+1)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, c)
		}
		return list, nil
	}
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil {
		return nil, err
	}
	return n, nil
}

// ofFloat writes a number so that it is read as one with a fraction again.
func ofFloat(f float64) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: floatText(f)}
}

func floatText(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".eIN") {
		s += ".0"
	}
	return s
}

func ofMap(m map[string]any, depth int) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		c, err := of(m[k], depth+1)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, Text(k), c)
	}
	return n, nil
}

// Write is the YAML of a tree, its keys in the tree's order, indented by two.
func Write(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
