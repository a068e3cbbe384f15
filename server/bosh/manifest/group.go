package manifest

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// Lifecycle says when an instance group runs.
type Lifecycle string

// The lifecycles.
const (
	Service    Lifecycle = "service"     // always
	Errand     Lifecycle = "errand"      // on request
	AutoErrand Lifecycle = "auto-errand" // once for every change
)

// lifecycles are all that there are.
var lifecycles = []Lifecycle{Service, Errand, AutoErrand}

// InstanceGroup is a set of like instances, each of which runs all its jobs.
type InstanceGroup struct {
	At
	Name               string
	AZs                []string
	Instances          int // in all AZs
	Jobs               []*Job
	VMType             string
	VMExtensions       []string
	VMResources        *VMResources
	Stemcell           string // the alias of one
	PersistentDiskMB   int    // 0: none
	PersistentDiskType string
	Networks           []Network
	Update             Update // what it says itself; see Manifest.UpdateOf
	MigratedFrom       []Migrated
	Lifecycle          Lifecycle      // Service when not given
	Properties         map[string]any // refused; without those of quarks
	RequiredService    string         // quarks.required_service: what it waits for
	Env                Env

	unsure bool // how many instances it has is yet to come from a variable, or cannot be read
	// shuffle names the deployment if features.randomize_az_placement is set: its
	// groups take their AZs in different orders. "" keeps the order of the list.
	shuffle string
}

// VMResources bound each container of a group. Zero means no bound.
type VMResources struct {
	CPU             float64 // vCPUs
	RAMMB           int
	EphemeralDiskMB int
}

// Network is one that a group names; there is only one, so it means little.
type Network struct {
	Name      string
	StaticIPs []string
	Default   []string
}

// Migrated is a group that this one was before; AZ is "" when not given.
type Migrated struct {
	At
	Name, AZ string
}

func group(o *object) *InstanceGroup {
	g := &InstanceGroup{At: o.At, Name: o.text("name"), AZs: o.texts("azs"), Instances: 1, VMType: o.text("vm_type"),
		VMExtensions: o.texts("vm_extensions"), Stemcell: o.text("stemcell"), PersistentDiskMB: o.number("persistent_disk"),
		PersistentDiskType: o.text("persistent_disk_type"), Lifecycle: Lifecycle(o.text("lifecycle"))}
	if g.Lifecycle == "" {
		g.Lifecycle = Service
	}
	if n := o.maybe("instances"); n != nil {
		g.Instances = *n
	} else {
		g.unsure = o.has("instances")
	}
	if n := tree.Get(o.node, "azs"); n != nil && isVariable(n) {
		g.unsure = true
	}
	o.each("jobs", "name", func(j *object) { g.Jobs = append(g.Jobs, job(j)) })
	if r := o.in("vm_resources"); r != nil {
		g.VMResources = r.vmResources()
	}
	o.each("networks", "name", func(n *object) {
		g.Networks = append(g.Networks, Network{n.text("name"), n.texts("static_ips"), n.texts("default")})
	})
	g.Update = update(o.in("update"))
	g.MigratedFrom = o.migrated()
	g.Properties, g.RequiredService = o.groupProperties()
	g.Env = agentEnv(o.in("env"))
	return g
}

func (o *object) vmResources() *VMResources {
	defer o.done()
	return &VMResources{o.float("cpu"), o.number("ram"), o.number("ephemeral_disk_size")}
}

// migrated reads names of groups, and BOSH's maps of a name and an AZ.
func (o *object) migrated() (all []Migrated) {
	for i, n := range o.list("migrated_from") {
		m := Migrated{At: At{o.at("migrated_from", nil).Path + "/" + tree.Segment(n, "name", i), n.Line}}
		switch n.Kind {
		case yaml.ScalarNode:
			m.Name = n.Value
		case yaml.MappingNode:
			each := &object{At: m.At, d: o.d, node: n, key: o.tableKey("migrated_from[]")}
			m.Name, m.AZ = each.text("name"), each.text("az")
			each.done()
		default:
			o.d.found.errorf(m.At, "expected the name of an instance group, got %s", tree.Kind(n))
			continue
		}
		all = append(all, m)
	}
	return all
}

// groupProperties reads the one property that a group may have, and the others.
func (o *object) groupProperties() (all map[string]any, required string) {
	props := o.in("properties")
	if props == nil {
		return nil, ""
	}
	all = tree.Value(props.node).(map[string]any)
	delete(all, "quarks")
	if len(all) == 0 {
		o.d.forgive(o.tableKey("properties"))
	}
	if q := props.in("quarks"); q != nil {
		required = q.text("required_service")
		q.done()
	}
	return all, required
}

// job returns the job of a name, or nil.
func (g *InstanceGroup) job(name string) *Job {
	if i := slices.IndexFunc(g.Jobs, func(j *Job) bool { return j.Name == name }); i >= 0 {
		return g.Jobs[i]
	}
	return nil
}
