package bosh

import (
	"context"
	"crypto/rand"
	"maps"
	"time"

	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/variables"
)

// Generated returns the values of a store with those of the variables that the
// manifest declares and that have none, neither there nor in s: it generates them,
// as the bosh CLI does with --vars-store. What is in the store stays as it is.
func (s Source) Generated(ctx context.Context, store interpolate.Values) (interpolate.Values, error) {
	s.Values = Merged(store, s.Values)
	root, _, err := s.Tree()
	if err != nil {
		return nil, err
	}
	m, _ := manifest.Decode(root)
	existing := map[string]variables.Value{}
	for name, v := range s.Values {
		existing[name] = variables.Value{Fields: FieldsOf(v)}
	}
	made, err := variables.Generate(ctx, variables.Request{Declared: m.Declared(), Existing: existing, Now: time.Now(), Rand: rand.Reader})
	if err != nil {
		return nil, err
	}
	all := maps.Clone(store)
	if all == nil {
		all = interpolate.Values{}
	}
	for name, v := range made {
		if _, exists := existing[name]; !exists {
			all[name] = v.Interpolated()
		}
	}
	return all, nil
}

// FieldsOf are the fields of a variable whose value users gave.
func FieldsOf(v any) map[string]string {
	fields := map[string]string{}
	switch v := v.(type) {
	case string:
		fields["password"] = v
	case map[string]any:
		for key, item := range v {
			if text, ok := item.(string); ok {
				fields[key] = text
			}
		}
	}
	return fields
}
