package bosh

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/config"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/variables"
)

// Filling is what a manifest is filled with.
type Filling struct {
	Configs  config.Set
	Given    interpolate.Values         // the values that users gave
	Existing map[string]variables.Value // of declared variables
	Rotate   []string                   // names of variables that are generated again
	Lenient  bool
}

// Filled is a manifest with all its values.
type Filled struct {
	*manifest.Manifest
	Tree *yaml.Node                 // what it was read from
	Made map[string]variables.Value // of the variables that it declares
}

// Fill adds the configs to a manifest, then the values that were given, then those
// of its variables, which it generates where there are none. The error has all that
// is wrong with the manifest, or names the variables without values.
func (f Filling) Fill(ctx context.Context, root *yaml.Node) (*Filled, error) {
	root, err := f.Configs.Expand(root, f.Given)
	if err != nil {
		return nil, err
	}
	cloud, err := f.Configs.Cloud(f.Given)
	if err != nil {
		return nil, err
	}
	if root, _, err = interpolate.Apply(root, f.Given); err != nil {
		return nil, err
	}
	m, found := decode(root, cloud)
	options := manifest.Options{Lenient: f.Lenient, Given: []string{}}
	found = append(found.Graded(options), manifest.Lint(m, options)...)
	found.Sort()
	if err := found.Err(); err != nil {
		return nil, err
	}
	out := &Filled{}
	out.Made, err = variables.Generate(ctx, variables.Request{Declared: m.Declared(), Existing: f.Existing, Rotate: f.Rotate, Now: time.Now(), Rand: rand.Reader})
	if err != nil {
		return nil, err
	}
	values := interpolate.Values{}
	for name, v := range out.Made {
		values[name] = v.Interpolated()
	}
	full, report, err := interpolate.Apply(root, values)
	if err != nil {
		return nil, err
	}
	if len(report.Missing) > 0 {
		return nil, fmt.Errorf("Expected to find variables: %s", strings.Join(report.Missing, ", ")) //nolint:staticcheck // BOSH's words
	}
	out.Tree = full
	out.Manifest, found = decode(full, cloud)
	return out, found.Graded(options).Err()
}

// decode reads a manifest, with what its names stand for.
func decode(root *yaml.Node, cloud *manifest.Cloud) (*manifest.Manifest, manifest.Findings) {
	m, found := manifest.Decode(root)
	return m, append(found, m.Use(cloud)...)
}
