package change

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
)

// Field is a field that may be absent, null or a value.
type Field[T any] struct {
	Set, Null bool
	V         T
}

// To is a field with a value.
func To[T any](v T) Field[T] { return Field[T]{Set: true, V: v} }

// UnmarshalJSON is called only for a field that is there.
func (o *Field[T]) UnmarshalJSON(b []byte) error {
	o.Set = true
	if string(b) == "null" {
		o.Null = true
		return nil
	}
	switch n := any(&o.V).(type) {
	case *int:
		v, err := wholeNumber(b)
		*n = int(v)
		return err
	case *int64:
		v, err := wholeNumber(b)
		*n = v
		return err
	}
	return json.Unmarshal(b, &o.V)
}

// wholeNumber reads a whole number, also from a string, as Rails does. One that is
// too large becomes the largest there is: checks of the request refuse it.
func wholeNumber(b []byte) (int64, error) {
	text := string(b)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(b, &text); err != nil {
			return 0, err
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return n, nil // the largest or smallest
	case err != nil:
		return 0, &json.UnmarshalTypeError{Value: "number " + text, Type: reflect.TypeFor[int64]()}
	}
	return n, nil
}

// Or is the value, or another when there is none.
func (o Field[T]) Or(other T) T {
	if !o.Set || o.Null {
		return other
	}
	return o.V
}
