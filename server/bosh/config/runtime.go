package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/pattern"
	"cupola/runtime/suggest"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/tree"
)

// runtimeLists are the keys of runtime-configs that add up.
var runtimeLists = []string{"releases", "addons", "variables"}

var latest = pattern.Lazy(`(^|[._])latest$`)

// checkRuntime reads a runtime-config by itself: its keys are some of a manifest's.
func checkRuntime(n *yaml.Node) (manifest.Findings, error) {
	known := append(slices.Clone(runtimeLists), "tags")
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i].Value; !slices.Contains(known, key) {
			return nil, fmt.Errorf("unknown key %q%s in a runtime config; it has releases, addons, variables and tags", key, suggest.Hint(key, known))
		}
	}
	m, found := manifest.Decode(n)
	for _, r := range m.Releases {
		if latest().MatchString(r.Version) {
			return found, fmt.Errorf("Runtime manifest contains the release '%s' with version as '%s'. Please specify the actual version string.", r.Name, r.Version) //nolint:staticcheck,revive // the director's words
		}
	}
	return found, nil
}

// Expand returns a manifest with what runtime-configs add to it: the addons that
// apply to one of its groups with their releases, all variables, and the tags that it
// does not have. Variables in runtime-configs that have no value in values are left
// for the manifest's own.
func (s Set) Expand(root *yaml.Node, values interpolate.Values) (*yaml.Node, error) {
	n, err := s.merged(Runtime, runtimeLists, []string{"tags"}, values)
	if err != nil || n == nil || root.Kind != yaml.MappingNode {
		return root, err
	}
	m, _ := manifest.Decode(root)
	add, found := manifest.Decode(n)
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("runtime config: %w", err)
	}
	out := shallow(root)
	releases, err := applied(out, m, add, n)
	if err != nil {
		return nil, err
	}
	if err := addList(out, "releases", releases); err != nil {
		return nil, err
	}
	if err := addVariables(out, m, add, n); err != nil {
		return nil, err
	}
	addTags(out, tree.Get(n, "tags"))
	return tree.Copy(out)
}

// applied adds the addons that apply, and returns their releases that the manifest
// does not have.
func applied(out *yaml.Node, m, add *manifest.Manifest, n *yaml.Node) (*yaml.Node, error) {
	addons, releases := list(), list()
	needed := map[string]bool{}
	for i, a := range add.Addons {
		if !m.Takes(a) {
			continue
		}
		addons.Content = append(addons.Content, tree.Get(n, "addons").Content[i])
		for _, j := range a.Jobs {
			if add.Release(j.Release) == nil {
				//nolint:staticcheck,revive // the director's words
				return nil, fmt.Errorf("Manifest specifies job '%s' which is defined in '%s', but '%s' is not listed in the runtime releases section.", j.Name, j.Release, j.Release)
			}
			needed[j.Release] = true
		}
	}
	version := map[string]string{}
	for _, r := range m.Releases {
		version[r.Name] = r.Version
	}
	for i, r := range add.Releases {
		have, ok := version[r.Name]
		switch {
		case !needed[r.Name]:
		case !ok:
			version[r.Name] = r.Version
			releases.Content = append(releases.Content, tree.Get(n, "releases").Content[i])
		case have != r.Version:
			//nolint:staticcheck,revive // the director's words
			return nil, fmt.Errorf("Runtime manifest specifies release '%s' with version as '%s'. This conflicts with version '%s' specified in the deployment manifest.", r.Name, r.Version, have)
		}
	}
	if len(addons.Content) == 0 {
		return releases, nil
	}
	return releases, addList(out, "addons", addons)
}

func addVariables(out *yaml.Node, m, add *manifest.Manifest, n *yaml.Node) error {
	seen := map[string]bool{}
	for _, v := range m.Variables {
		seen[v.Name] = true
	}
	for _, v := range add.Variables {
		if seen[v.Name] {
			return fmt.Errorf("Duplicate variable name '%s'", v.Name) //nolint:staticcheck,revive // the director's words
		}
		seen[v.Name] = true
	}
	return addList(out, "variables", tree.Get(n, "variables"))
}

// addTags adds tags; the manifest's own win.
func addTags(out, tags *yaml.Node) {
	if tags == nil || tags.Kind != yaml.MappingNode {
		return
	}
	own := tree.Get(out, "tags")
	if own == nil {
		own = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		out.Content = append(out.Content, tree.Text("tags"), own)
	}
	for i := 0; i+1 < len(tags.Content); i += 2 {
		if tree.Get(own, tags.Content[i].Value) == nil {
			own.Content = append(own.Content, tags.Content[i], tags.Content[i+1])
		}
	}
}

func list() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"} }

// shallow copies a map and the lists and maps that Expand adds to.
func shallow(root *yaml.Node) *yaml.Node {
	out := *root
	out.Content = slices.Clone(root.Content)
	for i := 0; i+1 < len(out.Content); i += 2 {
		if slices.Contains(runtimeLists, out.Content[i].Value) || out.Content[i].Value == "tags" {
			v := *out.Content[i+1]
			if tree.IsNull(&v) { // as if it were not there
				out.Content = slices.Delete(out.Content, i, i+2)
				i -= 2
				continue
			}
			v.Content = slices.Clone(v.Content)
			out.Content[i+1] = &v
		}
	}
	return &out
}
