package interpolate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/ops"
	"cupola/server/bosh/tree"
)

// Undeclare removes the variables that have a value from those that a manifest
// declares, as the bosh CLI does once it has interpolated them. It returns the
// report with all declared variables: they count as referred to.
func Undeclare(root *yaml.Node, values Values, r Report) (Report, error) {
	list := tree.Get(root, "variables")
	if tree.IsNull(list) {
		return r, nil
	}
	if list.Kind != yaml.SequenceNode {
		return r, fmt.Errorf("variables: expected a list, got %s", tree.Kind(list))
	}
	var left []*yaml.Node
	for i, item := range list.Content {
		name, err := declared(item)
		if err != nil {
			return r, fmt.Errorf("variables/%d%w", i, err)
		}
		switch _, has := values[name]; {
		case name == "":
			left = append(left, item)
		case !has:
			left = append(left, item)
			r.Missing = with(r.Missing, name)
		default:
			if _, err := ops.Find(root, "/variables/name="+tree.Escape(name)); err != nil { // it is there twice
				return r, err
			}
			r.Used, r.Unused = with(r.Used, name), without(r.Unused, name)
		}
	}
	list.Content = left
	return r, nil
}

// declared is the name of a variable that a manifest declares; "" for none.
func declared(item *yaml.Node) (name string, err error) {
	if item.Kind != yaml.MappingNode && !tree.IsNull(item) {
		return "", fmt.Errorf(": expected a map, got %s", tree.Kind(item))
	}
	for _, key := range []string{"name", "type"} {
		v := tree.Get(item, key)
		switch {
		case tree.IsNull(v):
		case v.Kind != yaml.ScalarNode:
			return "", fmt.Errorf("/%s: expected text, got %s", key, tree.Kind(v))
		case key == "name":
			name = v.Value
		}
	}
	return name, nil
}

func with(names []string, name string) []string {
	if i, has := slices.BinarySearch(names, name); !has {
		return slices.Insert(names, i, name)
	}
	return names
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(s string) bool { return s == name })
}

// Check fails, in the bosh CLI's words, if a variable has no value, or if a value's
// variable is not used.
func (r Report) Check(missing, unused bool) error {
	var faults faults
	if missing {
		faults.add("Expected to find variables:", r.Missing)
	}
	if unused {
		faults.add("Expected to use variables:", r.Unused)
	}
	if faults == nil {
		return nil
	}
	return faults
}

// faults is an error of several lines.
type faults []string

func (f faults) Error() string { return strings.Join(f, "\n") }

func (f *faults) add(what string, names []string) {
	if len(names) > 0 {
		*f = append(append(*f, what), indented(names)...)
	}
}

func indented(names []string) []string {
	lines := make([]string, len(names))
	for i, name := range names {
		lines[i] = "  " + name
	}
	return lines
}
