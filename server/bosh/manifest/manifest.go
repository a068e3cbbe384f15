// Package manifest reads BOSH deployment manifests into typed nouns, says all
// that is wrong with one at once, and gives every object of a deployment its
// name. It is pure, and bounded whatever a manifest says.
package manifest

import (
	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// Manifest is a deployment as its author wants it. A value that is a ((variable))
// yet to be interpolated is zero in fields that are not text.
type Manifest struct {
	Name           string
	DirectorUUID   string
	Features       Features
	Releases       []Release
	Stemcells      []Stemcell
	Update         Update
	InstanceGroups []*InstanceGroup
	Addons         []*Addon
	Properties     map[string]any // refused
	Variables      []Variable
	Tags           map[string]string

	at   At // of the name
	root *yaml.Node
	set  []setKey

	cloud *Cloud // nil: there is no cloud-config
}

// Features are the switches of a deployment. Nil was not given.
type Features struct {
	ConvergeVariables    bool  // every variable is made again when its options change
	UseDNSAddresses      *bool // false is refused
	UseTmpfsConfig       bool  // rendered templates lie in memory
	UseShortDNSAddresses *bool
	UseLinkDNSNames      *bool
	RandomizeAZs         bool // groups take their AZs in different orders
}

// Parse reads a manifest. The manifest is never nil: what could be read is in
// it, and the findings tell of all that could not.
func Parse(text []byte) (*Manifest, Findings) {
	root, err := tree.LoadBOSH(text)
	if err != nil {
		var found Findings
		found.errorf(At{Path: "/"}, "%v", err)
		return &Manifest{}, found
	}
	return Decode(root)
}

// Decode reads a manifest from a tree of package tree, as ops files and
// variables left it. The tree is kept; it must not change any more.
func Decode(root *yaml.Node) (*Manifest, Findings) {
	d := &decoder{}
	m := d.manifest(root)
	d.found.Sort()
	return m, d.found
}

func (d *decoder) manifest(root *yaml.Node) *Manifest {
	m := &Manifest{root: root}
	if root.Kind != yaml.MappingNode {
		d.found.errorf(At{"/", root.Line}, "expected a map, got %s", tree.Kind(root))
		return m
	}
	o := &object{At: At{"", root.Line}, d: d, node: root}
	m.Name = o.text("name")
	m.at = o.at("name", tree.Get(root, "name"))
	o.text("manifest_version") // cf-deployment's own
	m.DirectorUUID = o.text("director_uuid")
	m.Features = features(o.in("features"))
	o.each("releases", "name", func(r *object) { m.Releases = append(m.Releases, releaseOf(r)) })
	o.each("stemcells", "alias", func(s *object) { m.Stemcells = append(m.Stemcells, stemcell(s)) })
	m.Update = update(o.in("update"))
	o.each("instance_groups", "name", func(of *object) {
		g := group(of)
		if m.Features.RandomizeAZs {
			g.shuffle = m.Name
		}
		m.InstanceGroups = append(m.InstanceGroups, g)
	})
	o.each("addons", "name", func(a *object) { m.Addons = append(m.Addons, addon(a)) })
	m.Properties = o.values("properties")
	delete(m.Properties, "quarks_links") // links that cf-operator found in the cluster
	if len(m.Properties) == 0 {
		d.forgive("properties")
	}
	o.each("variables", "name", func(v *object) { m.Variables = append(m.Variables, variable(v)) })
	m.Tags = o.strings("tags")
	o.done()
	m.set = d.set
	return m
}

func features(o *object) (f Features) {
	if o == nil {
		return f
	}
	defer o.done()
	config, jobConfig := o.boolean("use_tmpfs_config"), o.boolean("use_tmpfs_job_config")
	return Features{ConvergeVariables: o.boolean("converge_variables"), RandomizeAZs: o.boolean("randomize_az_placement"),
		UseDNSAddresses: o.switched("use_dns_addresses"), UseTmpfsConfig: config || jobConfig,
		UseShortDNSAddresses: o.switched("use_short_dns_addresses"), UseLinkDNSNames: o.switched("use_link_dns_names")}
}

// Group returns the instance group of a name, or nil.
func (m *Manifest) Group(name string) *InstanceGroup {
	for _, g := range m.InstanceGroups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Release returns the release of a name, or nil.
func (m *Manifest) Release(name string) *Release {
	for i := range m.Releases {
		if m.Releases[i].Name == name {
			return &m.Releases[i]
		}
	}
	return nil
}
