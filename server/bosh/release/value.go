package release

import "strings"

// Set puts a value into nested maps by its dotted name. What is in the way and
// no map is replaced.
func Set(values map[string]any, name string, v any) {
	for {
		key, rest, more := strings.Cut(name, ".")
		if !more {
			values[key] = v
			return
		}
		inner, ok := values[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			values[key] = inner
		}
		values, name = inner, rest
	}
}
