package api

import (
	"cupola/store/cf"
)

// patchOptions sets the options that have a value and removes those that are
// null. There is one: hash-based routing is a feature that is off.
func patchOptions(have, p map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for k, v := range have {
		out[k] = v
	}
	for k, v := range p {
		switch {
		case k != "loadbalancing":
			return nil, cf.Unprocessable("Options Unknown field(s): '%s'", k)
		case v == nil:
			delete(out, k)
		case v != "round-robin" && v != "least-connection":
			return nil, cf.Unprocessable("Options Loadbalancing must be one of 'round-robin, least-connection' if present")
		default:
			out[k] = v
		}
	}
	return out, nil
}
