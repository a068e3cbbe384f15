package manifest

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/suggest"
	"cupola/server/bosh/tree"
)

// Cloud is what cloud-configs define: the names that instance groups may use, and
// what these names stand for.
type Cloud struct {
	azs, networks, vmTypes, vmExtensions, diskTypes []string

	resources map[string]map[string]any // cloud_properties of vm_types
	extends   map[string]map[string]any // cloud_properties of vm_extensions
	disks     map[string]diskType
}

// diskType is the size of a disk in MB, and its StorageClass in Kubernetes.
type diskType struct {
	mb    int
	class string
}

// DecodeCloud reads a cloud-config, of several merged ones. Findings name its parts
// by the path cloud-config/….
func DecodeCloud(root *yaml.Node) (*Cloud, Findings) {
	d := &decoder{}
	c := d.cloud(root)
	d.found.Sort()
	return c, d.found
}

func (d *decoder) cloud(root *yaml.Node) *Cloud {
	c := &Cloud{resources: map[string]map[string]any{}, extends: map[string]map[string]any{}, disks: map[string]diskType{}}
	o := &object{At: At{"cloud-config", root.Line}, d: d, node: root, key: cloudPath}
	if root.Kind != yaml.MappingNode {
		d.found.errorf(o.At, "expected a map, got %s", tree.Kind(root))
		return c
	}
	o.each("azs", "name", func(az *object) {
		c.azs = az.unique("az", c.azs)
		az.text("cpi")
		az.values("cloud_properties")
	})
	o.each("vm_types", "name", func(t *object) {
		c.vmTypes = t.unique("vm type", c.vmTypes)
		c.resources[t.text("name")] = t.resources()
	})
	o.each("vm_extensions", "name", func(t *object) {
		c.vmExtensions = t.unique("vm extension", c.vmExtensions)
		c.extends[t.text("name")] = t.resources()
	})
	o.each("disk_types", "name", func(t *object) {
		c.diskTypes = t.unique("disk type", c.diskTypes)
		class, _ := t.values("cloud_properties")["storage_class"].(string)
		c.disks[t.text("name")] = diskType{t.number("disk_size"), class}
	})
	o.each("networks", "name", func(n *object) { c.network(n) })
	c.compilation(o.in("compilation"))
	o.done()
	return c
}

// unique adds the name of an item to those of the same kind.
func (o *object) unique(kind string, names []string) []string {
	name := o.text("name")
	switch {
	case name == "":
		o.d.found.errorf(o.At, "the %s has no name", kind)
	case slices.Contains(names, name):
		o.d.found.errorf(o.At, "Duplicate %s name '%s'", kind, cut(name, 60))
	default:
		names = append(names, name)
	}
	return names
}

// resources are the cloud_properties that bound containers, by the keys of
// vm_resources.
func (o *object) resources() map[string]any {
	all := map[string]any{}
	given := o.values("cloud_properties")
	disk, _ := given["ephemeral_disk"].(map[string]any)
	for _, from := range []struct {
		key   string
		value any
	}{{"cpu", given["cpu"]}, {"ram", given["ram"]}, {"ephemeral_disk_size", disk["size"]}, {"ephemeral_disk_size", given["disk"]},
		{"ephemeral_disk_size", given["ephemeral_disk_size"]}} {
		if from.value != nil {
			all[from.key] = from.value
		}
	}
	n, err := tree.Of(all)
	if err != nil {
		return nil
	}
	// Only what is a number is kept: other clouds may write what they like there.
	silent := &object{d: &decoder{}, node: n}
	if silent.vmResources(); len(silent.d.found) > 0 {
		o.d.found.warnf(At{o.Path + "/cloud_properties", o.Line}, "not used: %s", silent.d.found[0].What)
		return nil
	}
	return all
}

func (c *Cloud) network(n *object) {
	c.networks = n.unique("network", c.networks)
	if t := n.text("type"); t != "" && t != "manual" && t != "dynamic" && t != "vip" && !variableText().MatchString(t) {
		n.d.found.errorf(At{n.Path + "/type", n.Line}, "Invalid network type '%s'; it is manual, dynamic or vip", cut(t, 60))
	}
	for _, key := range []string{"subnets", "subnet_size", "managed", "dns", "cloud_properties"} {
		n.any(key)
	}
}

// compilation checks the names in the settings for compilation VMs, of which there
// are none here.
func (c *Cloud) compilation(o *object) {
	if o == nil {
		return
	}
	for _, key := range []string{"workers", "reuse_compilation_vms", "orphan_workers", "vm_resources", "cloud_properties", "env"} {
		o.any(key)
	}
	for _, name := range []struct {
		kind  string
		names []string
		known []string
	}{{"az", []string{o.text("az")}, c.azs}, {"vm type", []string{o.text("vm_type")}, c.vmTypes},
		{"network", []string{o.text("network")}, c.networks}, {"vm extension", o.texts("vm_extensions"), c.vmExtensions}} {
		for _, text := range name.names {
			if unknown(text, name.known) {
				o.d.found.errorf(o.At, "Compilation config references an unknown %s '%s'%s", name.kind, cut(text, 60), suggest.Hint(text, name.known))
			}
		}
	}
	o.done()
}

// unknown reports whether a name is given, and is none of those that are known.
func unknown(name string, known []string) bool {
	return name != "" && !slices.Contains(known, name) && !variableText().MatchString(name)
}

// Use gives the groups of a manifest what the names in it stand for in the
// cloud-config. The findings name unknown ones, in the director's words. Nil changes
// nothing.
func (m *Manifest) Use(c *Cloud) (found Findings) {
	if c == nil {
		return nil
	}
	m.cloud = c
	l := &linter{m: m}
	for _, g := range m.InstanceGroups {
		l.useNames(g, c)
		l.useVM(g, c)
		l.useDisk(g, c)
	}
	return l.found
}

func (l *linter) useNames(g *InstanceGroup, c *Cloud) {
	for _, az := range g.AZs {
		if unknown(az, c.azs) {
			l.found.errorf(At{g.Path + "/azs", g.Line}, "Instance group '%s' references unknown availability zone '%s'%s", g.Name, cut(az, 60), suggest.Hint(az, c.azs))
		}
	}
	for _, n := range g.Networks {
		if unknown(n.Name, c.networks) {
			l.found.errorf(At{g.Path + "/networks", g.Line}, "Instance group '%s' references an unknown network '%s'%s", g.Name, cut(n.Name, 60), suggest.Hint(n.Name, c.networks))
		}
	}
}

// useVM takes the bounds of a group's containers from its VM type and extensions.
func (l *linter) useVM(g *InstanceGroup, c *Cloud) {
	at := At{g.Path + "/vm_type", g.Line}
	if g.VMType != "" && g.VMResources != nil {
		l.soft(at, "Instance group '%s' can only specify one of 'vm_type' or 'vm_resources' keys", g.Name)
		return
	}
	if unknown(g.VMType, c.vmTypes) {
		l.found.errorf(at, "Instance group '%s' references an unknown vm type '%s'%s", g.Name, cut(g.VMType, 60), suggest.Hint(g.VMType, c.vmTypes))
	}
	bounds := maps.Clone(c.resources[g.VMType])
	if bounds == nil {
		bounds = map[string]any{}
	}
	for _, name := range g.VMExtensions {
		if unknown(name, c.vmExtensions) {
			l.found.errorf(At{g.Path + "/vm_extensions", g.Line}, "The vm_extension '%s' has not been configured in cloud-config%s", cut(name, 60), suggest.Hint(name, c.vmExtensions))
		}
		maps.Copy(bounds, c.extends[name])
	}
	if n, err := tree.Of(bounds); err == nil && len(bounds) > 0 && g.VMResources == nil {
		g.VMResources = (&object{d: &decoder{}, node: n}).vmResources()
	}
}

// useDisk takes the size of a group's persistent disk from its type.
func (l *linter) useDisk(g *InstanceGroup, c *Cloud) {
	name := g.PersistentDiskType
	at := At{g.Path + "/persistent_disk_type", g.Line}
	switch {
	case name == "" || variableText().MatchString(name):
	case g.PersistentDiskMB > 0:
		l.soft(at, "Instance group '%s' specifies more than one of the following keys: 'persistent_disk' and 'persistent_disk_type'. Choose one.", g.Name)
	case unknown(name, c.diskTypes):
		l.found.errorf(at, "Instance group '%s' references an unknown disk type '%s'%s", g.Name, cut(name, 60), suggest.Hint(name, c.diskTypes))
	default:
		g.PersistentDiskMB, g.PersistentDiskType = c.disks[name].mb, c.disks[name].class
	}
}

// onlyInClouds are keys of a deployment of old that a cloud-config has now.
var onlyInClouds = []string{"azs", "vm_types", "disk_types", "compilation", "networks", "vm_extensions"}

// clouded reports sections that belong into a cloud-config.
func (l *linter) clouded() {
	for _, key := range onlyInClouds {
		if n := tree.Get(l.m.root, key); n != nil {
			l.found.errorf(At{"/" + key, n.Line}, "Deployment manifest contains '%s' section, but this can only be set in a cloud-config; see 'cupola deployment update-cloud-config'", key)
		}
	}
}

// ofCloud reports whether a key has an effect because there is a cloud-config.
func (m *Manifest) ofCloud(key string) bool {
	return m.cloud != nil && (strings.HasSuffix(key, "].vm_type") || strings.HasSuffix(key, "].vm_extensions") || strings.HasSuffix(key, "].networks"))
}
