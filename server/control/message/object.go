package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// Object is a JSON object with its keys in the order of the text. Values are nil,
// bool, string, json.Number, []any and *Object.
type Object struct {
	Keys   []string
	Values map[string]any
}

// maxDepth bounds nesting, as Ruby's JSON parser does.
const maxDepth = 100

// errSyntax says that a text is not JSON.
var errSyntax = errors.New("invalid JSON")

// Parse reads a JSON text. Anything but an object is the value of the key "_json",
// as in Rails.
func Parse(text []byte) (*Object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errSyntax
	}
	if o, ok := v.(*Object); ok {
		return o, nil
	}
	return &Object{Keys: []string{"_json"}, Values: map[string]any{"_json": v}}, nil
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := t.(json.Delim)
	switch {
	case !ok:
		return t, nil
	case depth >= maxDepth:
		return nil, errSyntax
	case delim == '[':
		return parseArray(d, depth+1)
	}
	return parseObject(d, depth+1)
}

func parseArray(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := parseValue(d, depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

// parseObject reads an object. Of a key that occurs twice the last value counts.
func parseObject(d *json.Decoder, depth int) (any, error) {
	o := &Object{Values: map[string]any{}}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, errSyntax
		}
		if _, twice := o.Values[key]; !twice {
			o.Keys = append(o.Keys, key)
		}
		if o.Values[key], err = parseValue(d, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return o, err
}

// Has reports whether the object has a key; a nil object has none.
func (o *Object) Has(key string) bool {
	if o == nil {
		return false
	}
	_, ok := o.Values[key]
	return ok
}

// Get is the value of a key, nil for none; of "a.b" the value of b in the object a.
func (o *Object) Get(path string) any {
	for {
		key, rest, nested := strings.Cut(path, ".")
		if o == nil {
			return nil
		}
		if !nested {
			return o.Values[key]
		}
		o, _ = o.Values[key].(*Object)
		path = rest
	}
}
