package erb

import (
	"cupola/server/bosh/link"
	"cupola/server/bosh/tree"
)

// Context is what the templates of a job see for one instance. Values are made
// of nil, bool, int, int64, uint64, float64, string, []any and map[string]any.
type Context struct {
	Spec map[string]any // with name, index, …
	// Properties are those that the job declares, nested by the dots of their
	// names; nil are those without a value.
	Properties map[string]any
	Order      *tree.Order // in which templates find the keys of Properties
	Links      map[string]link.Link
}

// linkForRuby is a link in the form that Ruby gets.
func linkForRuby(l link.Link) any {
	instances := make([]any, len(l.Instances))
	for i, from := range l.Instances {
		instances[i] = instanceValues(from)
	}
	return map[string]any{"address": l.Address, "properties": forRuby(map[string]any(l.Properties), l.Order), "instances": forRuby(instances, nil)}
}

// instanceValues is an instance of a link as templates see it.
func instanceValues(i link.Instance) map[string]any {
	az := any(nil)
	if i.AZ != "" {
		az = i.AZ
	}
	return map[string]any{"name": i.Name, "id": i.ID, "address": i.Address, "az": az, "index": i.Index, "bootstrap": i.Bootstrap}
}
