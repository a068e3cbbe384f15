package main

import (
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// readYAML reads a configuration file.
func readYAML(r io.Reader) (map[string]any, error) {
	values := map[string]any{}
	if err := yaml.NewDecoder(r).Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return values, nil
}
