package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Map holds values as Value returns them. In JSON they keep the kind and size of
// their numbers.
type Map map[string]any

// MarshalJSON writes what UnmarshalJSON reads as the same values.
func (m Map) MarshalJSON() ([]byte, error) { return EncodeJSON(map[string]any(m)) }

// UnmarshalJSON reads an object, or null.
func (m *Map) UnmarshalJSON(text []byte) error {
	v, err := DecodeJSON(text)
	if err != nil {
		return err
	}
	values, ok := v.(map[string]any)
	if !ok && v != nil {
		return errors.New("expected an object")
	}
	*m = values
	return nil
}

// EncodeJSON writes a value as Value returns it. DecodeJSON reads the same value
// again: a number keeps its kind and size.
func EncodeJSON(v any) ([]byte, error) { return json.Marshal(mapNumbers(v, ofFloatNumber)) }

// DecodeJSON reads JSON as Load reads YAML: 1 is an integer, 1.0 a float.
func DecodeJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("invalid JSON: more than one value")
	}
	return mapNumbers(v, fromNumber), nil
}

func ofFloatNumber(v any) any {
	if f, ok := v.(float64); ok {
		return json.Number(floatText(f))
	}
	return v
}

func fromNumber(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	tag := "!!int"
	if strings.ContainsAny(string(n), ".eE") {
		tag = "!!float"
	}
	return scalar(&yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: string(n)})
}

// Sent returns v as the director reads what the bosh CLI sends it. The CLI
// writes a whole float below a million without a point, so it becomes an integer.
func Sent(v any) any {
	return mapNumbers(v, func(v any) any {
		if f, ok := v.(float64); ok && f == float64(int(f)) && f < 1e6 && f > -1e6 {
			return int(f)
		}
		return v
	})
}

// Written returns a tree as the bosh CLI writes and reads the value of an operation before it puts it into a manifest
// (go-patch: ReplaceOp.cloneValue): with the integers that Sent has.
func Written(n *yaml.Node) *yaml.Node {
	for _, c := range n.Content {
		Written(c)
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" {
		if i, ok := Sent(scalar(n)).(int); ok {
			n.Tag, n.Value, n.Style = "!!int", strconv.Itoa(i), 0
		}
	}
	return n
}

// mapNumbers returns v with f applied to everything in it but maps and lists.
func mapNumbers(v any, f func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = mapNumbers(item, f)
		}
		return m
	case []any:
		if v == nil {
			return v
		}
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = mapNumbers(item, f)
		}
		return list
	}
	return f(v)
}
