package manifest

import (
	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// Job is a job of a release, with what its templates are rendered from.
type Job struct {
	At
	Name       string
	Release    string
	Consumes   map[string]Consume
	Provides   map[string]Provide
	Properties map[string]any // without the block of Quarks
	Order      *tree.Order    // in which the document has the keys of Properties
	Quarks     *Quarks        // nil when there is none
	Addon      string         // the name of the addon that placed it, or ""

	Custom []CustomProvider
}

// Consume says where a link comes from. Zero is: from the only provider of its type.
type Consume struct {
	At
	None        bool // nil: the link is not available
	From        string
	Deployment  string
	Network     string
	IPAddresses *bool

	// A manual link has an address or its own instances.
	Manual     bool
	Instances  []LinkInstance
	Properties map[string]any
	Order      *tree.Order // in which the document has the keys of Properties
	Address    string
}

// LinkInstance is one instance of a manual link.
type LinkInstance struct {
	Name, ID, AZ, Address string
	Index                 int
	Bootstrap             bool
}

// Provide says what becomes of a link that a job offers.
type Provide struct {
	At
	None    bool   // nil: it is not offered
	As      string // the name that others know it by
	Shared  bool   // other deployments may consume it
	Aliases []LinkAlias
}

// CustomProvider is a link that the manifest has a job offer
// (custom_provider_definitions).
type CustomProvider struct {
	Name, Type string
	Properties []string
}

func job(o *object) *Job {
	j := &Job{At: o.At, Name: o.text("name"), Release: o.text("release"), Consumes: map[string]Consume{}, Provides: map[string]Provide{}}
	o.entries("consumes", func(name string, n *yaml.Node, c *object) { j.Consumes[name] = consume(n, c) })
	o.entries("provides", func(name string, n *yaml.Node, p *object) { j.Provides[name] = provide(n, p) })
	o.each("custom_provider_definitions", "name", func(c *object) {
		j.Custom = append(j.Custom, CustomProvider{c.text("name"), c.text("type"), c.texts("properties")})
	})
	if props := o.in("properties"); props != nil {
		j.Properties = tree.Sent(tree.Value(props.node)).(map[string]any)
		j.Order = tree.OrderOf(props.node)
		j.Quarks = quarksOf(props)
		for _, name := range quarksNames {
			delete(j.Properties, name)
		}
	}
	return j
}

// isNil reports whether a link is given as null or as BOSH's text nil.
func isNil(n *yaml.Node) bool { return tree.IsNull(n) || n.Kind == yaml.ScalarNode && n.Value == "nil" }

// mapped reports whether a link is given as a map, and adds a fault for other
// types.
func mapped(n *yaml.Node, o *object) bool {
	if n.Kind != yaml.MappingNode {
		o.d.found.errorf(o.At, "expected a map or nil, got %s", tree.Kind(n))
		return false
	}
	return true
}

func consume(n *yaml.Node, o *object) Consume {
	if isNil(n) {
		return Consume{At: o.At, None: true}
	}
	if !mapped(n, o) {
		return Consume{At: o.At}
	}
	defer o.done()
	c := Consume{At: o.At, From: o.text("from"), Deployment: o.text("deployment"), Network: o.text("network"), IPAddresses: o.switched("ip_addresses"),
		Properties: o.sent("properties"), Order: tree.OrderOf(tree.Get(n, "properties")), Address: o.text("address"), Manual: o.has("instances") || o.has("address")}
	o.each("instances", "address", func(i *object) {
		c.Instances = append(c.Instances, LinkInstance{i.text("name"), i.text("id"), i.text("az"), i.text("address"), i.number("index"), i.boolean("bootstrap")})
	})
	return c
}

func provide(n *yaml.Node, o *object) Provide {
	if isNil(n) {
		return Provide{At: o.At, None: true}
	}
	if !mapped(n, o) {
		return Provide{At: o.At}
	}
	defer o.done()
	o.text("ip_addresses")
	p := Provide{At: o.At, As: o.text("as"), Shared: o.boolean("shared")}
	o.each("aliases", "domain", func(a *object) { p.Aliases = append(p.Aliases, linkAlias(a)) })
	return p
}
