package bpm

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// maxBytes bounds a bpm.yml; the largest of the known releases have 10 KB.
const maxBytes = 1 << 20

// Parse parses a bpm.yml. Like bpm it ignores unknown keys, accepts scalars of
// any type as strings, and treats an empty text as a job without processes.
// Check validates the result.
func Parse(text []byte) (Config, error) {
	if len(text) > maxBytes {
		return Config{}, fmt.Errorf("bpm.yml has %d bytes; at most %d are read", len(text), maxBytes)
	}
	root, err := tree.Load(text)
	if err != nil {
		return Config{}, fault(err)
	}
	var c Config
	if err := root.Decode(&c); err != nil {
		return Config{}, fault(err)
	}
	c.Unknown = document.unknown(root, "")
	return c, nil
}

// FromValue takes what a deployment manifest has at quarks.bpm, as decoded YAML.
func FromValue(v any) (Config, error) {
	text, err := yaml.Marshal(v)
	if err != nil {
		return Config{}, fault(err)
	}
	return Parse(text)
}

func fault(err error) error {
	var types *yaml.TypeError
	if errors.As(err, &types) {
		return fmt.Errorf("bpm.yml: %s", strings.ReplaceAll(strings.Join(types.Errors, "; "), "into bpm.", "as "))
	}
	return fmt.Errorf("bpm.yml: %s", strings.TrimPrefix(err.Error(), "yaml: "))
}
