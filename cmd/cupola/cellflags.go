package main

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/cmd/cupola/cli"
	"cupola/server/cells"
)

// yamlTypes are the types of flags that are written in YAML.
func yamlTypes() map[reflect.Type]cli.Decode {
	return map[reflect.Type]cli.Decode{reflect.TypeFor[cells.List](): decodeYAML, reflect.TypeFor[cells.Preloaded](): decodeYAML}
}

// decodeYAML reads YAML into a flag: what the configuration file has parsed, or
// the text of a flag.
func decodeYAML(value, into any) error {
	text, ok := value.(string)
	if !ok {
		encoded, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		text = string(encoded)
	}
	if list, ok := into.(*cells.List); ok && strings.TrimSpace(text) == cells.None {
		*list = cells.NoCells()
		return nil
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
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
