package interpolate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// Undeclare removes the variables that have a value from those that a manifest
// declares, as the bosh CLI does once it has interpolated them. It returns the
// report with all declared variables: they count as referred to.
func Undeclare(root *yaml.Node, values Values, r Report) Report {
	list := tree.Get(root, "variables")
	if list == nil || list.Kind != yaml.SequenceNode {
		return r
	}
	list.Content = slices.DeleteFunc(list.Content, func(item *yaml.Node) bool {
		n := tree.Get(item, "name")
		if n == nil || n.Kind != yaml.ScalarNode {
			return false
		}
		_, has := values[n.Value]
		if has {
			r.Used, r.Unused = with(r.Used, n.Value), without(r.Unused, n.Value)
		} else {
			r.Missing = with(r.Missing, n.Value)
		}
		return has
	})
	return r
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
