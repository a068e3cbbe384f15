package main

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"cupola/server/cells"
)

// yamlFlags are the types of flags that are written in YAML.
func yamlFlags() []kong.Option {
	return []kong.Option{kong.TypeMapper(reflect.TypeFor[cells.List](), kong.MapperFunc(decodeYAML)), kong.TypeMapper(reflect.TypeFor[cells.Preloaded](), kong.MapperFunc(decodeYAML))}
}

// decodeYAML reads YAML into a flag: what the configuration file has parsed, or
// the text of a flag.
func decodeYAML(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue(ctx.Value.Name)
	if err != nil {
		return err
	}
	text, ok := t.Value.(string)
	if !ok {
		encoded, err := yaml.Marshal(t.Value)
		if err != nil {
			return err
		}
		text = string(encoded)
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(target.Addr().Interface()); err != nil {
		return yamlFault(err)
	}
	return nil
}

// goType is what the YAML decoder calls a place by.
var goType = regexp.MustCompile(` (?:into|in type) [\w.\[\]*]+`)

// yamlFault is an error of the decoder without the names of types of this program.
func yamlFault(err error) error {
	fault, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return err
	}
	return errors.New(goType.ReplaceAllString(strings.Join(fault.Errors, "; "), ""))
}
