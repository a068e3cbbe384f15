package manifest

import (
	"bytes"
	"slices"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/pattern"
)

// Audited writes an entry as a separate manifest, in the order of the user's keys, as
// Cloud Controller's audit event has it: hidden replaces what may be secret, and redact
// removes the password from a buildpack's URL. (CC: AppManifestMessage.audit_hash, and
// the layout of Ruby's to_yaml.)
func (app *App) Audited(hidden string, redact func(string) string) (string, error) {
	entry := plain(app.node)
	secret := func(n *yaml.Node) { *n = *text(hidden) }
	each := func(f func(*yaml.Node)) func(*yaml.Node) {
		return func(n *yaml.Node) {
			for _, item := range n.Content {
				f(item)
			}
		}
	}
	url := func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			n.Value = redact(n.Value)
		}
	}
	for key, change := range map[string]func(*yaml.Node){
		"env": secret, "cnb_credentials": secret, "buildpack": url, "buildpacks": each(url),
		"services": each(func(n *yaml.Node) { with(n, "parameters", secret) }),
	} {
		with(entry, key, change)
	}
	doc := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text("applications"), {Kind: yaml.SequenceNode, Content: []*yaml.Node{entry}}}}
	var out bytes.Buffer
	out.WriteString("---\n")
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(doc); err != nil {
		return "", err
	}
	return out.String(), e.Close()
}

// foreign matches the strings that Ruby writes between double quotes.
var foreign = pattern.Lazy(`^[^\pL\pN_][^"]*$`)

// text is a string. Ruby also quotes one that would be read as something else.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: s}
	switch {
	case foreign().MatchString(s):
		n.Style = yaml.DoubleQuotedStyle
	case n.ShortTag() != "!!str":
		n.Style = yaml.SingleQuotedStyle
	}
	n.Tag = "!!str"
	return n
}

// with lets change change the value of a key of a map, however it is written, if it has one.
func with(n *yaml.Node, key string, change func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if v := n.Content[i+1]; underscore(n.Content[i].Value) == key && v.Tag != "!!null" {
			change(v)
		}
	}
}

// plain copies a tree without its comments and its layout.
func plain(n *yaml.Node) *yaml.Node {
	switch tag := n.ShortTag(); tag {
	case "!!str":
		return text(n.Value)
	case "!!null":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag}
	}
	c := &yaml.Node{Kind: n.Kind, Tag: n.ShortTag(), Value: n.Value, Content: slices.Clone(n.Content)}
	for i, item := range c.Content {
		c.Content[i] = plain(item)
	}
	return c
}
