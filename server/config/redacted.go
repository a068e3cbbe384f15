package config

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

// shown are the placeholders of the flags whose values are not secret and hold none.
// Others may have passwords in them, such as URLs, commands and YAML.
var shown = []string{"ADDR", "DIR", "FILE", "NAME", "TIME", "N", "SIZE", "PART", "ENGINE", "MODE", "STACK", "OS=STACK", "NAME=ADDR", "NAME=N,…", "HOST:PORT"}

// private is the flag whose value is not a secret but names a person.
const private = "acme-email"

// Hidden stands for a value that is set.
const Hidden = "(set, not shown)"

// Redacted lists the values of flags that are not secret, by the flag's name. Of others
// it only says that they are set: a new flag is hidden until its placeholder tells that
// it may be shown.
func (c *Config) Redacted() map[string]any {
	all := map[string]any{}
	eachFlag(reflect.ValueOf(c).Elem(), func(name string, field reflect.StructField, v reflect.Value) {
		switch {
		case v.IsZero():
		case isShown(name, field.Type, field.Tag):
			all[name] = plain(v.Interface())
		default:
			all[name] = Hidden
		}
	})
	return all
}

// eachFlag calls f with each flag of a configuration.
func eachFlag(of reflect.Value, f func(name string, field reflect.StructField, v reflect.Value)) {
	for i := range of.NumField() {
		field, v := of.Type().Field(i), of.Field(i)
		_, embedded := field.Tag.Lookup("embed")
		switch {
		case field.Tag.Get("flag") == "-":
		case v.Kind() == reflect.Struct && (embedded || field.Anonymous):
			eachFlag(v, f)
		default:
			f(flagOf(field.Tag.Get("env")), field, v)
		}
	}
}

// flagOf is the flag that an environment variable stands for.
func flagOf(env string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(env, "CUPOLA_")), "_", "-")
}

func isShown(name string, t reflect.Type, tag reflect.StructTag) bool {
	placeholder, named := tag.Lookup("placeholder")
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64:
		return true
	default:
		return name != private && (slices.Contains(shown, placeholder) || !named && tag.Get("default") != "")
	}
}

func plain(v any) any {
	if d, ok := v.(time.Duration); ok {
		return d.String()
	}
	return v
}
