package change

import "encoding/json"

// Field is a field that may be absent, null or a value.
type Field[T any] struct {
	Set, Null bool
	V         T
}

// UnmarshalJSON is called only for a field that is there.
func (o *Field[T]) UnmarshalJSON(b []byte) error {
	o.Set = true
	if string(b) == "null" {
		o.Null = true
		return nil
	}
	return json.Unmarshal(b, &o.V)
}

// Or is the value, or another when there is none.
func (o Field[T]) Or(other T) T {
	if !o.Set || o.Null {
		return other
	}
	return o.V
}
