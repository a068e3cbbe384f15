package erb

import (
	"encoding/json"
	"strconv"
	"strings"

	"cupola/server/bosh/tree"
)

// text is v as Ruby's to_s writes it; false where that depends on the version
// of Ruby.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	default:
		return inspect(v)
	}
}

// inspect is v as Ruby shows it within a list.
func inspect(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "nil", true
	case bool:
		return strconv.FormatBool(v), true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case float64:
		return float(v), true
	case string:
		return inspectString(v)
	case map[string]any:
		return "{}", len(v) == 0
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			var ok bool
			if items[i], ok = inspect(item); !ok {
				return "", false
			}
		}
		return "[" + strings.Join(items, ", ") + "]", true
	}
	return "", false
}

func inspectString(s string) (string, bool) {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return "", false
		}
	}
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `#{`, `\#{`, `#$`, `\#$`, `#@`, `\#@`).Replace(s)
	return `"` + s + `"`, true
}

// float is how Ruby writes a float: at least one digit after the point, and an
// exponent for less than 0.0001 and for whole numbers from 10^15.
func float(f float64) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	e, _ := strconv.Atoi(exponent) // it is a number: FormatFloat wrote it
	if plain := strconv.FormatFloat(f, 'f', -1, 64); e >= -4 && strings.Contains(plain, ".") {
		return plain
	} else if e >= -4 && e < 15 {
		return plain + ".0"
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	return mantissa + "e" + exponent
}

// forRuby is v such that Ruby's JSON reads from it what v is: a float stays one
// though it has no fraction, and maps have their keys in an order.
func forRuby(v any, o *tree.Order) any {
	switch v := v.(type) {
	case float64:
		return json.Number(float(v))
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = forRuby(item, o.Key(strconv.Itoa(i)))
		}
		return list
	case map[string]any:
		m := inOrder{tree.Sorted(v, o), make(map[string]any, len(v))}
		for key, item := range v {
			m.values[key] = forRuby(item, o.Key(key))
		}
		return m
	}
	return v
}

// inOrder is a map whose JSON has the keys in an order, which is that of a Hash in Ruby.
type inOrder struct {
	keys   []string
	values map[string]any
}

// MarshalJSON writes an object.
func (m inOrder) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for n, key := range m.keys {
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.values[key])
		if err != nil {
			return nil, err
		}
		if n > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}
