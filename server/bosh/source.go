package bosh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/ops"
	"cupola/server/bosh/tree"
)

// File is a file's text, and the name by which errors tell of it.
type File struct {
	Name string
	Text []byte
}

// Source is what a deployment is made of.
type Source struct {
	Manifest File
	Ops      []File             // applied in order, before variables
	Values   interpolate.Values // of variables
}

// WithOps is the manifest with its ops applied.
func (s Source) WithOps() (*yaml.Node, error) {
	root, err := tree.LoadBOSH(s.Manifest.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Manifest.Name, err)
	}
	var all []ops.Op
	for _, f := range s.Ops {
		more, err := ops.ParseFile(f.Name, f.Text)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return ops.Apply(root, all)
}

// Tree is the manifest with its ops applied and all values in it.
func (s Source) Tree() (*yaml.Node, interpolate.Report, error) {
	root, err := s.WithOps()
	if err != nil {
		return nil, interpolate.Report{}, err
	}
	return interpolate.Apply(root, s.Values)
}

// Values reads a file of variables: a map of their values.
func Values(f File) (interpolate.Values, error) {
	n, err := tree.LoadBOSH(f.Text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	case tree.IsNull(n):
		return nil, nil
	case n.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("%s: expected a map of variables, got %s", f.Name, tree.Kind(n))
	}
	return tree.Value(n).(map[string]any), nil
}

// Assigned reads NAME=VALUE. The value is YAML, so that 5 is a number; a text is
// taken as it is, without quotes around it (bosh-cli: director/template/var_kv.go).
func Assigned(text string) (name string, value any, err error) {
	name, rest, err := Assignment(text, "value")
	if err != nil {
		return "", nil, err
	}
	value, err = valueOf(name, rest)
	if _, isText := value.(string); isText {
		value = unquoted(rest)
	}
	return name, value, err
}

// Assignment splits NAME=REST; what says what REST is, for the errors.
func Assignment(text, what string) (name, rest string, err error) {
	name, rest, ok := strings.Cut(text, "=")
	switch {
	case !ok:
		return "", "", fmt.Errorf("Expected var '%s' to be in format 'name=%s'", text, what) //nolint:revive,staticcheck // the bosh CLI's words, as below
	case name == "":
		return "", "", fmt.Errorf("Expected var '%s' to specify non-empty name", text) //nolint:revive,staticcheck
	case rest == "":
		return "", "", fmt.Errorf("Expected var '%s' to specify non-empty %s", text, what) //nolint:revive,staticcheck
	}
	return name, rest, nil
}

func valueOf(name, text string) (any, error) {
	n, err := tree.LoadBOSH([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the value of %s: %w", name, err)
	}
	return tree.Value(n), nil
}

func unquoted(text string) string {
	last := len(text) - 1
	if last > 0 && text[0] == text[last] && (text[0] == '"' || text[0] == '\'') {
		return text[1:last]
	}
	return text
}

// FromEnvironment are the values of variables PREFIX_name.
func FromEnvironment(prefix string, environment []string) (interpolate.Values, error) {
	values := interpolate.Values{}
	for _, line := range environment {
		assignment, ok := strings.CutPrefix(line, prefix+"_")
		if !ok {
			continue
		}
		name, text, ok := strings.Cut(assignment, "=")
		if !ok || name == "" {
			continue
		}
		value, err := valueOf(name, text)
		if err != nil {
			return nil, fmt.Errorf("the environment's %s_: %w", prefix, err)
		}
		values[name] = value
	}
	return values, nil
}

// Merged are all values; those of later sets win.
func Merged(sets ...interpolate.Values) interpolate.Values {
	all := interpolate.Values{}
	for _, s := range sets {
		maps.Copy(all, s)
	}
	return all
}

// Nested returns the values with those of names like a.b.c as fields of a.
func Nested(values interpolate.Values) (interpolate.Values, error) {
	all := interpolate.Values{}
	for _, name := range slices.SortedFunc(maps.Keys(values), byDots) {
		fields := strings.Split(name, ".")
		at := map[string]any(all)
		for i, f := range fields[:len(fields)-1] {
			inner, isMap := at[f].(map[string]any)
			if !isMap && at[f] != nil {
				return nil, fmt.Errorf("the variable %s is a field, but %s is not a map", name, strings.Join(fields[:i+1], "."))
			}
			inner = maps.Clone(inner)
			if inner == nil {
				inner = map[string]any{}
			}
			at[f] = inner
			at = inner
		}
		at[fields[len(fields)-1]] = values[name]
	}
	return all, nil
}

// byDots orders a name before those of its fields.
func byDots(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(a, "."), strings.Count(b, ".")), cmp.Compare(a, b))
}
