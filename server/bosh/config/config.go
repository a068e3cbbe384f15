package config

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/pattern"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/tree"
)

// Type says what a config is for.
type Type string

// The types that have an effect. Others are kept, as the director keeps them.
const (
	Cloud   Type = "cloud"
	Runtime Type = "runtime"
)

// Config is a version of a config.
type Config struct {
	ID      int    `json:"id,string"` // 0: it is not kept
	Type    Type   `json:"type"`
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Set are the configs of a deployment, at most one of each type and name.
type Set []Config

// plainName is that of a config or of a type.
var plainName = pattern.Lazy(`^[\w.-]{1,200}$`)

// Check reads a config by itself: its findings, or why it is not a config.
func (c Config) Check() (manifest.Findings, error) {
	if !plainName().MatchString(string(c.Type)) {
		return nil, fmt.Errorf("invalid type %q: give up to 200 letters, digits, hyphens, underscores and dots, like cloud or runtime", c.Type)
	}
	if !plainName().MatchString(c.Name) {
		return nil, fmt.Errorf("invalid name %q: give up to 200 letters, digits, hyphens, underscores and dots", c.Name)
	}
	n, err := c.tree(nil)
	if err != nil {
		return nil, err
	}
	var found manifest.Findings
	switch c.Type {
	case Cloud:
		_, found = manifest.DecodeCloud(n)
	case Runtime:
		found, err = checkRuntime(n)
	}
	return found, err
}

// tree reads a config, with values in it.
func (c Config) tree(values interpolate.Values) (*yaml.Node, error) {
	n, err := tree.LoadBOSH([]byte(c.Content))
	switch {
	case err != nil:
		return nil, c.fault(fmt.Errorf("Config must be valid YAML: %w", err)) //nolint:staticcheck,revive // the director's words
	case n.Kind != yaml.MappingNode:
		return nil, c.fault(errors.New("YAML hash expected"))
	}
	if n, _, err = interpolate.Apply(n, values); err != nil {
		return nil, c.fault(err)
	}
	return tree.Unplaced(n), nil
}

func (c Config) fault(err error) error { return fmt.Errorf("%s config '%s': %w", c.Type, c.Name, err) }

// Of are the configs of a type.
func (s Set) Of(t Type) (all Set) {
	for _, c := range s {
		if c.Type == t {
			all = append(all, c)
		}
	}
	return all
}

// With is the set with a config in place of that of its type and name.
func (s Set) With(c Config) (all Set) {
	for _, have := range s {
		if have.Type != c.Type || have.Name != c.Name {
			all = append(all, have)
		}
	}
	return append(all, c)
}

// merged is what all configs of a type say: their lists one after the other. A key in
// once may stand in one config alone. Nil: there are none.
func (s Set) merged(t Type, lists, once []string, values interpolate.Values) (*yaml.Node, error) {
	all := s.Of(t)
	if len(all) == 0 {
		return nil, nil
	}
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, c := range all {
		n, err := c.tree(values)
		if err != nil {
			return nil, err
		}
		for _, key := range lists {
			if err := addList(out, key, tree.Get(n, key)); err != nil {
				return nil, c.fault(err)
			}
		}
		for _, key := range once {
			v := tree.Get(n, key)
			switch {
			case tree.IsNull(v):
			case tree.Get(out, key) != nil:
				return nil, fmt.Errorf("%s config '%s' key cannot be defined in multiple %s configs.", title(t), key, t) //nolint:staticcheck,revive // the director's words
			default:
				out.Content = append(out.Content, tree.Text(key), v)
			}
		}
	}
	return out, nil
}

func title(t Type) string {
	if t == Cloud {
		return "Cloud"
	}
	return "Runtime"
}

// addList adds the items of a list to those that out has at a key.
func addList(out *yaml.Node, key string, items *yaml.Node) error {
	if tree.IsNull(items) {
		return nil
	}
	if items.Kind != yaml.SequenceNode {
		return fmt.Errorf("/%s: expected a list, got %s", key, tree.Kind(items))
	}
	list := tree.Get(out, key)
	if list == nil {
		list = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		out.Content = append(out.Content, tree.Text(key), list)
	}
	list.Content = append(list.Content, items.Content...)
	return nil
}

// Check says why no deploy could use the configs together.
func (s Set) Check() error {
	if _, err := s.Cloud(nil); err != nil {
		return err
	}
	_, err := s.merged(Runtime, runtimeLists, []string{"tags"}, nil)
	return err
}

// cloudLists are the keys of cloud-configs that add up.
var cloudLists = []string{"azs", "networks", "vm_types", "vm_extensions", "disk_types"}

// Cloud is what all cloud-configs say, with values in them. Nil: there are none.
func (s Set) Cloud(values interpolate.Values) (*manifest.Cloud, error) {
	n, err := s.merged(Cloud, cloudLists, []string{"compilation"}, values)
	if err != nil || n == nil {
		return nil, err
	}
	c, found := manifest.DecodeCloud(n)
	for _, f := range found {
		if f.Level == manifest.Error {
			return nil, errors.New(f.String())
		}
	}
	return c, nil
}

// ShownText is Shown of the text of a manifest; "" of none.
func (s Set) ShownText(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	root, err := tree.LoadBOSH([]byte(text))
	if err == nil {
		root, err = s.Shown(root)
	}
	if err != nil {
		return "", err
	}
	out, err := tree.Write(root)
	return string(out), err
}

// Shown is a manifest with what configs add to it, as the director compares
// deployments.
func (s Set) Shown(root *yaml.Node) (*yaml.Node, error) {
	out, err := s.Expand(root, nil)
	if err != nil {
		return nil, err
	}
	cloud, err := s.merged(Cloud, cloudLists, []string{"compilation"}, nil)
	if err != nil || cloud == nil || out.Kind != yaml.MappingNode {
		return out, err
	}
	all := *out
	all.Content = append(append([]*yaml.Node{}, cloud.Content...), out.Content...)
	return &all, nil
}
