package store

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"cupola/store/cf"
)

// jsonColumn keeps a value as JSON text.
type jsonColumn struct{ v any }

func (c jsonColumn) Value() (driver.Value, error) {
	b, err := json.Marshal(c.v)
	return string(b), err
}

func (c jsonColumn) Scan(src any) error {
	b, err := bytesOf(src)
	if err != nil || len(b) == 0 || string(b) == "null" { // as the labels of most rows: nothing to decode
		return err
	}
	return json.Unmarshal(b, c.v)
}

// timeColumn keeps a time as microseconds since 1970; the zero time is 0.
type timeColumn struct{ t *time.Time }

func (c timeColumn) Value() (driver.Value, error) {
	if c.t.IsZero() {
		return int64(0), nil
	}
	return c.t.UnixMicro(), nil
}

func (c timeColumn) Scan(src any) error {
	n, ok := src.(int64)
	if !ok {
		return fmt.Errorf("time column holds %T", src)
	}
	*c.t = time.Time{}
	if n != 0 {
		*c.t = time.UnixMicro(n).UTC()
	}
	return nil
}

// nullColumn keeps "" as NULL: an optional reference.
type nullColumn struct{ s *string }

func (c nullColumn) Value() (driver.Value, error) {
	if *c.s == "" {
		return nil, nil
	}
	return *c.s, nil
}

func (c nullColumn) Scan(src any) error {
	if src == nil {
		*c.s = ""
		return nil
	}
	b, err := bytesOf(src)
	*c.s = string(b)
	return err
}

// sealedColumn keeps a value as sealed JSON.
type sealedColumn struct {
	seal *sealer
	v    any
}

func (c sealedColumn) Value() (driver.Value, error) {
	b, err := json.Marshal(c.v)
	if err != nil {
		return nil, err
	}
	return c.seal.seal(b), nil
}

func (c sealedColumn) Scan(src any) error {
	b, err := bytesOf(src)
	if err != nil || len(b) == 0 {
		return err
	}
	plain, err := c.seal.unseal(b)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, c.v)
}

// textColumn keeps JSON text as it was given, nil as "".
type textColumn struct{ v *json.RawMessage }

func (c textColumn) Value() (driver.Value, error) { return string(*c.v), nil }

func (c textColumn) Scan(src any) error {
	b, err := bytesOf(src)
	*c.v = textOf(b)
	return err
}

// textOf is a copy of JSON text, nil of none.
func textOf(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	return append(json.RawMessage(nil), b...)
}

// sealedTextColumn keeps JSON text as it was given, sealed: the order of its
// keys and how its numbers are written matter. nil is an empty column.
type sealedTextColumn struct {
	seal *sealer
	v    *json.RawMessage
}

func (c sealedTextColumn) Value() (driver.Value, error) {
	if *c.v == nil {
		return []byte{}, nil
	}
	return c.seal.seal(*c.v), nil
}

func (c sealedTextColumn) Scan(src any) error {
	b, err := bytesOf(src)
	*c.v = nil
	if err != nil || len(b) == 0 {
		return err
	}
	plain, err := c.seal.unseal(b)
	*c.v = textOf(plain)
	return err
}

// lifecycleColumn keeps a lifecycle as JSON in which the buildpacks are sealed:
// a URL of one may hold a password. Type and stack are there to be filtered by.
type lifecycleColumn struct {
	seal *sealer
	v    *cf.Lifecycle
}

type lifecycleJSON struct {
	Type       string
	Stack      string
	Image      *cf.StackImage      `json:",omitempty"`
	Buildpacks []string            `json:",omitempty"` // of a row that an older cupola wrote
	Packages   []cf.BuildpackImage `json:",omitempty"`
	Sealed     []byte              `json:",omitempty"`
}

func (c lifecycleColumn) Value() (driver.Value, error) {
	out := lifecycleJSON{Type: c.v.Type, Stack: c.v.Stack, Image: c.v.Image, Packages: c.v.Packages}
	if len(c.v.Buildpacks) > 0 {
		plain, err := json.Marshal(c.v.Buildpacks)
		if err != nil {
			return nil, err
		}
		out.Sealed = c.seal.seal(plain)
	}
	return jsonColumn{out}.Value()
}

func (c lifecycleColumn) Scan(src any) error {
	var in lifecycleJSON
	if err := (jsonColumn{&in}).Scan(src); err != nil {
		return err
	}
	*c.v = cf.Lifecycle{Type: in.Type, Stack: in.Stack, Image: in.Image, Buildpacks: in.Buildpacks, Packages: in.Packages}
	if len(in.Sealed) == 0 {
		return nil
	}
	return sealedColumn{c.seal, &c.v.Buildpacks}.Scan(in.Sealed)
}

func bytesOf(src any) ([]byte, error) {
	switch v := src.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("column holds %T", src)
}

// sealedBytes keeps bytes as they are, sealed; none are none.
type sealedBytes struct {
	seal *sealer
	b    *[]byte
}

func (c sealedBytes) Value() (driver.Value, error) {
	if len(*c.b) == 0 {
		return []byte{}, nil
	}
	return c.seal.seal(*c.b), nil
}

func (c sealedBytes) Scan(src any) error {
	b, err := bytesOf(src)
	*c.b = nil
	if err != nil || len(b) == 0 {
		return err
	}
	if *c.b, err = c.seal.open(b); err != nil {
		return fmt.Errorf("open a sealed column (is store.key the one this database was made with?): %w", err)
	}
	return nil
}
