package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// loadYAML resolves flags from a YAML file whose keys are their names. A key
// that is no flag is an error: a typing error must not go unseen.
func loadYAML(r io.Reader) (kong.Resolver, error) {
	values := map[string]any{}
	if err := yaml.NewDecoder(r).Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the configuration file: %w", err)
	}
	return &yamlResolver{values}, nil
}

type yamlResolver struct{ values map[string]any }

// Validate is called once with all that the command line knows.
func (y *yamlResolver) Validate(app *kong.Application) error {
	known := map[string]bool{}
	collect(app.Node, known)
	for k := range y.values {
		if !known[strings.ReplaceAll(k, "_", "-")] {
			return fmt.Errorf("unknown key %q in the configuration file: give flags of 'cupola serve'", k)
		}
	}
	return nil
}

func collect(n *kong.Node, known map[string]bool) {
	for _, f := range n.Flags {
		known[f.Name] = true
	}
	for _, c := range n.Children {
		collect(c, known)
	}
}

// Resolve gives a flag its value, if the file has one.
func (y *yamlResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range []string{flag.Name, strings.ReplaceAll(flag.Name, "-", "_")} {
		v, ok := y.values[name]
		if !ok {
			continue
		}
		switch v.(type) {
		case map[string]any, []any:
			return v, nil
		}
		return fmt.Sprint(v), nil
	}
	return nil, nil
}
