package kube

import (
	"fmt"
	"maps"
	"slices"

	"cupola/server/bosh/tree"
	"cupola/server/bosh/variables"
)

// Variables are those of a deployment, by name: the declared ones that were made, and
// the others that users gave.
func Variables(made map[string]variables.Value, given tree.Map) (all []Variable, err error) {
	for _, name := range slices.Sorted(maps.Keys(made)) {
		v := made[name]
		all = append(all, Variable{Name: name, Fields: v.Fields, Made: v.Made})
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, declared := made[name]; declared {
			continue
		}
		value, ok := given[name].(string)
		if !ok {
			text, err := tree.EncodeJSON(given[name])
			if err != nil {
				return nil, fmt.Errorf("encode the variable %s: %w", name, err)
			}
			value = string(text)
		}
		all = append(all, Variable{Name: name, Implicit: true, Fields: map[string]string{"value": value}})
	}
	return all, nil
}
