package release

import (
	"fmt"
	"math"
	"time"
)

// Normalize makes of decoded YAML what templates can be given: keys of maps are
// strings, and so are dates and what JSON cannot say.
func Normalize(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return normalMap(v)
	case map[any]any:
		return normalMap(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = Normalize(item)
		}
		return list
	case time.Time:
		if v.Equal(v.Truncate(24 * time.Hour)) {
			return v.Format(time.DateOnly)
		}
		return v.Format(time.RFC3339Nano)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	}
	return v
}

func normalMap[K comparable](v map[K]any) map[string]any {
	m := make(map[string]any, len(v))
	for key, item := range v {
		switch key := any(key).(type) {
		case string:
			m[key] = Normalize(item)
		case nil:
			m[""] = Normalize(item)
		default:
			m[fmt.Sprint(Normalize(key))] = Normalize(item)
		}
	}
	return m
}
