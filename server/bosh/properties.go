package bosh

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
	"cupola/server/bosh/tree"
)

// visible are the properties that the templates of a job see: those that it
// declares, with the manifest's values or else its own.
func visible(job release.Job, given map[string]any) (map[string]any, error) {
	seen := map[string]any{}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(job.Properties)) {
		v, err := value(given, name)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if v == nil {
			v = job.Properties[name].Default
		}
		release.Set(seen, name, clone(v))
	}
	return seen, errors.Join(faults...)
}

// orderOf is the order in which the templates of a job find the keys of its properties, as
// with BOSH (bosh-director: deployment_plan/job.rb): that of the spec; the director sorts
// values, but for maps in lists.
func orderOf(job release.Job, given *manifest.Job) *tree.Order {
	all := &tree.Order{}
	for _, name := range job.Order {
		of := job.Properties[name].Order
		if v, err := value(given.Properties, name); err == nil && v != nil {
			of = given.Order.At(name)
		}
		all.Put(name, of.Sorted())
	}
	return all
}

// value is nil for what is not there.
func value(given map[string]any, name string) (any, error) {
	at := any(given)
	for key := range strings.SplitSeq(name, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("Property '%s' expects a hash, but received '%s'", name, class(at)) //nolint:revive // BOSH's text
		}
		if at = m[key]; at == nil {
			return nil, nil
		}
	}
	return at, nil
}

// class is what Ruby calls the kind of a value.
func class(v any) string {
	switch v := v.(type) {
	case string:
		return "String"
	case []any:
		return "Array"
	case float64:
		return "Float"
	case bool:
		if v {
			return "TrueClass"
		}
		return "FalseClass"
	}
	return "Integer"
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = clone(item)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = clone(item)
		}
		return list
	}
	return v
}
