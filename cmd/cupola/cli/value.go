package cli

import (
	"encoding"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value is what flags and arguments have in common: a field and its tags.
type Value struct {
	Name        string
	Help        string
	Default     string
	HasDefault  bool
	Envs        []string // environment variables
	Enum        []string // the values that are taken; any for none
	PlaceHolder string
	Required    bool

	field    reflect.Value
	sep      string // between the elements of a list or the pairs of a map; "" for none
	pathType string // of the tag type
	decode   Decode // of the field's type, if it has one
	given    bool   // by the command line, the configuration file or the environment
	origin   string // of the value
}

// Decode reads a value of a custom type: text, or what the configuration file
// has instead, into a pointer to it.
type Decode func(value, into any) error

func newValue(name string, field reflect.Value, tag reflect.StructTag, o Options) Value {
	v := Value{Name: name, Help: tag.Get("help"), Envs: words(tag.Get("env")), Enum: words(tag.Get("enum")), PlaceHolder: tag.Get("placeholder"),
		field: field, pathType: tag.Get("type"), decode: o.Types[field.Type()]}
	v.Default, v.HasDefault = tag.Lookup("default")
	separators := map[reflect.Kind]struct{ tag, usual string }{reflect.Slice: {"sep", ","}, reflect.Map: {"mapsep", ";"}}
	if s, ok := separators[field.Kind()]; ok && v.decode == nil {
		if v.sep, ok = tag.Lookup(s.tag); !ok {
			v.sep = s.usual
		} else if v.sep == "none" {
			v.sep = ""
		}
	}
	return v
}

func (v *Value) isList() bool { return v.field.Kind() == reflect.Slice && v.decode == nil }

func (v *Value) isMap() bool { return v.field.Kind() == reflect.Map && v.decode == nil }

// set takes a value as text. A list and a map get what it holds besides what they
// were given before.
func (v *Value) set(text string) error {
	v.give()
	switch {
	case v.decode != nil:
		return v.decode(text, v.field.Addr().Interface())
	case v.isList():
		return v.addAll(split(text, v.sep), v.field)
	case v.isMap():
		for _, pair := range split(text, v.sep) {
			name, value, ok := strings.Cut(pair, "=")
			if !ok {
				return fmt.Errorf("expected NAME=VALUE, got %q", pair)
			}
			if err := v.addPair(name, value); err != nil {
				return err
			}
		}
		return nil
	}
	return v.scalar(text, v.field)
}

// give begins with an empty field at the first value.
func (v *Value) give() {
	if !v.given {
		v.field.SetZero()
	}
	v.given = true
}

// load takes a value of the configuration file.
func (v *Value) load(value any) error {
	v.give()
	list, isList := value.([]any)
	pairs, isMap := value.(map[string]any)
	switch {
	case v.decode != nil:
		return v.decode(value, v.field.Addr().Interface())
	case isList && v.isList():
		return v.addAll(texts(list), v.field)
	case isMap && v.isMap():
		for _, name := range slices.Sorted(maps.Keys(pairs)) {
			if err := v.addPair(name, pairs[name]); err != nil {
				return err
			}
		}
		return nil
	case isList, isMap:
		return errors.New("takes one value")
	}
	return v.set(fmt.Sprint(value))
}

func texts(list []any) (all []string) {
	for _, e := range list {
		all = append(all, fmt.Sprint(e))
	}
	return all
}

// addAll adds elements to a list.
func (v *Value) addAll(elements []string, list reflect.Value) error {
	for _, text := range elements {
		e := reflect.New(list.Type().Elem()).Elem()
		if err := v.scalar(text, e); err != nil {
			return err
		}
		list.Set(reflect.Append(list, e))
	}
	return nil
}

// addPair adds a name and its value to a map, whose values may be lists: then text
// has commas between their elements.
func (v *Value) addPair(name string, value any) error {
	e := reflect.New(v.field.Type().Elem()).Elem()
	list, isList := value.([]any)
	var err error
	switch {
	case e.Kind() == reflect.Slice && isList:
		err = v.addAll(texts(list), e)
	case e.Kind() == reflect.Slice:
		err = v.addAll(split(fmt.Sprint(value), ","), e)
	case isList:
		err = errors.New("takes one value")
	default:
		err = v.scalar(fmt.Sprint(value), e)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if v.field.IsNil() {
		v.field.Set(reflect.MakeMap(v.field.Type()))
	}
	v.field.SetMapIndex(reflect.ValueOf(name), e)
	return nil
}

// scalar reads text into a field, or an element of one.
func (v *Value) scalar(text string, into reflect.Value) error {
	if into.Kind() == reflect.Pointer {
		p := reflect.New(into.Type().Elem())
		if err := v.scalar(text, p.Elem()); err != nil {
			return err
		}
		into.Set(p)
		return nil
	}
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch into.Kind() {
	case reflect.String:
		path, err := v.path(text)
		into.SetString(path)
		return err
	case reflect.Bool:
		yes := strings.EqualFold(text, "yes")
		if b, err := strconv.ParseBool(text); err == nil {
			yes = b
		} else if !yes && !strings.EqualFold(text, "no") {
			return fmt.Errorf("expected true or false, got %q", text)
		}
		into.SetBool(yes)
		return nil
	}
	return number(text, into)
}

// number reads a number.
func number(text string, into reflect.Value) error {
	bits, what := into.Type().Bits(), "a number"
	var err error
	switch _, duration := into.Interface().(time.Duration); {
	case duration:
		var d time.Duration
		d, err = time.ParseDuration(text)
		what = "a time like 90s, 15m or 24h"
		into.SetInt(int64(d))
	case into.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 0, bits)
		what = "a whole number"
		into.SetInt(n)
	case into.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 0, bits)
		what = "a whole number from 0 on"
		into.SetUint(n)
	case into.CanFloat():
		var n float64
		n, err = strconv.ParseFloat(text, bits)
		into.SetFloat(n)
	}
	if err != nil {
		return fmt.Errorf("expected %s, got %q", what, text)
	}
	return nil
}

// path is the absolute path of a file that text names, if it names one.
func (v *Value) path(text string) (string, error) {
	if v.pathType == "" || text == "-" {
		return text, nil
	}
	if home, err := os.UserHomeDir(); err == nil && (text == "~" || strings.HasPrefix(text, "~/")) {
		text = home + text[1:]
	}
	path, err := filepath.Abs(text)
	if err != nil || v.pathType == "path" {
		return path, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s does not exist", path)
	case err != nil:
		return "", err
	case info.IsDir() && v.pathType == "existingfile":
		return "", fmt.Errorf("%s is a directory, not a file", path)
	case !info.IsDir() && v.pathType == "existingdir":
		return "", fmt.Errorf("%s is not a directory", path)
	}
	return path, nil
}

// Origin says where the value comes from: flag, environment NAME, FILE:LINE, or default.
func (v *Value) Origin() string {
	switch {
	case v.origin != "":
		return v.origin
	case v.given:
		return "flag"
	}
	return "default"
}

// fill takes a value that the command line did not give.
func (v *Value) fill(file Setting) error {
	if v.given {
		return nil
	}
	if file.Value != nil {
		if err := v.load(file.Value); err != nil {
			return fmt.Errorf("%w (in the configuration file)", err)
		}
		v.origin = fmt.Sprintf("%s:%d", file.file, file.Line)
		return nil
	}
	for _, name := range v.Envs {
		if text, ok := os.LookupEnv(name); ok {
			if err := v.set(text); err != nil {
				return fmt.Errorf("%w (in the environment variable %s)", err, name)
			}
			v.origin = "environment " + name
			return nil
		}
	}
	if !v.HasDefault {
		return nil
	}
	err := v.set(v.Default)
	v.given = false
	return err
}

// check holds that the value is one of those that are taken.
func (v *Value) check() error {
	if len(v.Enum) == 0 || !v.given {
		return nil
	}
	if got := fmt.Sprint(v.field); !slices.Contains(v.Enum, got) {
		return fmt.Errorf("expected %s, got %q", oneOf(v.Enum), got)
	}
	return nil
}

// oneOf names all of some words.
func oneOf(all []string) string {
	if len(all) == 1 {
		return all[0]
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// split divides text at each separator that has no backslash before it.
func split(text, sep string) (parts []string) {
	if sep == "" {
		return []string{text}
	}
	const escaped = "\x00"
	for part := range strings.SplitSeq(strings.ReplaceAll(text, `\`+sep, escaped), sep) {
		parts = append(parts, strings.ReplaceAll(part, escaped, sep))
	}
	if last := len(parts) - 1; parts[last] == "" { // also of "", which is not an element
		parts = parts[:last]
	}
	return parts
}
