package toml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Encode encodes what Parse returned, with sorted keys.
func Encode(t Table) []byte {
	var b strings.Builder
	writeTable(&b, nil, t)
	return []byte(b.String())
}

// marshal encodes v by its json tags. null values are left out, and keys are sorted.
func marshal(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var t Table
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("only a table can be a document: %w", err)
	}
	return Encode(t), nil
}

// writeTable writes the values of a table, and then the tables in it, which need
// headers.
func writeTable(b *strings.Builder, path []string, t Table) {
	names := slices.Sorted(maps.Keys(t))
	for _, name := range names {
		if v := t[name]; v != nil && !isTable(v) && !isTables(v) {
			b.WriteString(quoteKey(name) + " = " + inlineText(v) + "\n")
		}
	}
	for _, name := range names {
		at := append(slices.Clone(path), quoteKey(name))
		header := strings.Join(at, ".")
		switch v := t[name].(type) {
		case Table:
			b.WriteString("\n[" + header + "]\n")
			writeTable(b, at, v)
		case []any:
			if !isTables(v) {
				continue
			}
			for _, item := range v {
				b.WriteString("\n[[" + header + "]]\n")
				writeTable(b, at, item.(Table))
			}
		}
	}
}

func isTable(v any) bool { _, ok := v.(Table); return ok }

// isTables reports whether v is written as an array of tables.
func isTables(v any) bool {
	all, ok := v.([]any)
	return ok && len(all) > 0 && !slices.ContainsFunc(all, func(v any) bool { return !isTable(v) })
}

func inlineText(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case []any:
		var all []string
		for _, item := range v {
			if item != nil {
				all = append(all, inlineText(item))
			}
		}
		return "[" + strings.Join(all, ", ") + "]"
	case Table:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if v[name] != nil {
				all = append(all, quoteKey(name)+" = "+inlineText(v[name]))
			}
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	if f, ok := v.(float64); ok {
		return floatText(f)
	}
	return fmt.Sprint(v) // a boolean, a moment, an integer, or a number of JSON
}

// floatText is a float, which no reader takes for an integer.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

func quoteKey(name string) string {
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return r > 127 || !isBare(byte(r)) }) < 0 {
		return name
	}
	return quote(name)
}

// quote is a basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
