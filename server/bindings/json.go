package bindings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// value is a JSON value: nil, bool, string, json.Number, []value or object.
type value any

// object keeps the order of its keys.
type object []attribute

// set sets a key; one that is there keeps its place, as in a Ruby hash.
func (o *object) set(name string, v value) {
	if i := slices.IndexFunc(*o, func(a attribute) bool { return a.name == name }); i >= 0 {
		(*o)[i].value = v
		return
	}
	*o = append(*o, attribute{name, v})
}

// parse reads one JSON value; nothing at all is null.
func parse(text json.RawMessage) (value, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := next(d)
	if err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("parse JSON: more follows the value")
	}
	return v, nil
}

func next(d *json.Decoder) (value, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		return nextObject(d)
	case json.Delim('['):
		all := []value{}
		for d.More() {
			v, err := next(d)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		_, err := d.Token()
		return all, err
	}
	return t, nil
}

func nextObject(d *json.Decoder) (value, error) {
	all, at := object{}, map[string]int{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := next(d)
		if err != nil {
			return nil, err
		}
		name, _ := t.(string) // it is: More was true in an object
		if i, twice := at[name]; twice {
			all[i].value = v
			continue
		}
		at[name] = len(all)
		all = append(all, attribute{name, v})
	}
	_, err := d.Token()
	return all, err
}

// encoder writes JSON as Cloud Controller does: compact, keys in their order,
// numbers without exponents. html escapes what JSON in HTML must not have,
// which Cloud Controller does in VCAP_SERVICES but not in the files of
// credentials.
type encoder struct {
	bytes.Buffer
	html bool
}

func encode(v value, html bool) []byte {
	e := &encoder{html: html}
	e.value(v)
	return e.Bytes()
}

func (e *encoder) value(v value) {
	switch v := v.(type) {
	case nil:
		e.WriteString("null")
	case bool:
		e.WriteString(strconv.FormatBool(v))
	case string:
		e.text(v)
	case json.Number:
		e.WriteString(number(string(v)))
	case []value:
		e.WriteByte('[')
		for i, item := range v {
			e.comma(i)
			e.value(item)
		}
		e.WriteByte(']')
	case object:
		e.WriteByte('{')
		for i, a := range v {
			e.comma(i)
			e.text(a.name)
			e.WriteByte(':')
			e.value(a.value)
		}
		e.WriteByte('}')
	}
}

func (e *encoder) comma(i int) {
	if i > 0 {
		e.WriteByte(',')
	}
}

// short are the control characters that have their own escape.
var short = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

func (e *encoder) text(s string) {
	e.WriteByte('"')
	for _, r := range s {
		escape, ok := short[r]
		switch {
		case ok:
			e.WriteString(escape)
		case r < 0x20, e.html && strings.ContainsRune("<>&\u2028\u2029", r):
			fmt.Fprintf(e, `\u%04x`, r)
		default:
			e.WriteRune(r)
		}
	}
	e.WriteByte('"')
}

// maxExponent bounds how many digits a number is written out to: a few bytes
// could ask for gigabytes.
const maxExponent = 1000

// number writes a number as Ruby does: an integer as it is, anything else as a
// decimal fraction without an exponent.
func number(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		if text == "-0" {
			return "0"
		}
		return text
	}
	sign, rest := "", text
	if strings.HasPrefix(rest, "-") {
		sign, rest = "-", rest[1:]
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(rest), "e")
	exponent := 0
	if power != "" {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil || exponent > maxExponent || exponent < -maxExponent {
			return text
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, point := whole+fraction, len(whole)+exponent
	if point < 1 {
		digits, point = strings.Repeat("0", 1-point)+digits, 1
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	whole = strings.TrimLeft(digits[:point], "0")
	fraction = strings.TrimRight(digits[point:], "0")
	return sign + orZero(whole) + "." + orZero(fraction)
}

func orZero(digits string) string {
	if digits == "" {
		return "0"
	}
	return digits
}
