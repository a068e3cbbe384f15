package config

import (
	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
)

// Lint reads a manifest with all that the configs say of it, and returns what is wrong,
// the worst first. Values are those for the configs; the manifest has its own.
func (s Set) Lint(root *yaml.Node, values interpolate.Values, o manifest.Options) (*manifest.Manifest, manifest.Findings, error) {
	root, err := s.Expand(root, values)
	if err != nil {
		return nil, nil, err
	}
	cloud, err := s.Cloud(values)
	if err != nil {
		return nil, nil, err
	}
	m, found := manifest.Decode(root)
	found = append(found, m.Use(cloud)...)
	found = append(found.Graded(o), manifest.Lint(m, o)...)
	found.Sort()
	return m, found, nil
}
