package cells

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/rootfs/reference"
	"cupola/runtime/lrp"
	"cupola/runtime/pattern"
	"cupola/server/manifest"
)

// Config says into which cells the machine is carved, and what those offer.
// Its fields are flags of cupola serve.
type Config struct {
	Cells      List      `help:"Divide the machine into cells: a YAML list of {name, tags, required_tags, zone, memory, disk, containers, preloaded_rootfses, rootfs_providers}; or none, so that all runs on the clusters of --kubernetes." placeholder:"YAML" env:"CUPOLA_CELLS"`
	Preloaded  Preloaded `name:"preloaded-rootfses" help:"Root filesystems of cells, as YAML: a map of names to stacks, paths or images, or a list of stacks; by default all stacks." placeholder:"YAML" env:"CUPOLA_PRELOADED_ROOTFSES"`
	Kubernetes []string  `help:"Add a cell that is a namespace of a Kubernetes cluster, as NAME=KUBECONFIG[,context=C][,namespace=N][,tag=T][,zone=Z][,tunnel=auto|always|never], or NAME=in-cluster[,…] where the daemon is a pod of it; only what requires the tag T, or NAME without one, runs on it. May be repeated." placeholder:"NAME=FILE" sep:"none" env:"CUPOLA_KUBERNETES"`
	Providers  []string  `name:"rootfs-providers" help:"Providers of further root filesystems: docker, oci; by default both." placeholder:"SCHEME" env:"CUPOLA_ROOTFS_PROVIDERS"`

	KubernetesRegistry string `help:"Address at which the nodes of --kubernetes pull images of droplets, and the pods that stage apps get and leave files, by TLS with a certificate of cupola's CA; without it, they run docker apps alone." placeholder:"ADDR" env:"CUPOLA_KUBERNETES_REGISTRY"`
	RegistryListen     string `name:"kubernetes-registry-listen" help:"Address of this machine to listen at for --kubernetes-registry, where that is another's: of a Service, a load balancer or NAT that leads here; by default that of --kubernetes-registry." placeholder:"ADDR" env:"CUPOLA_KUBERNETES_REGISTRY_LISTEN"`

	Clusters []Cluster `flag:"-"` // those of Kubernetes; Normalize reads them
	None     bool      `flag:"-"` // no containers run on this machine; Normalize reads it from Cells
}

// None is a List of no cells, as a flag has it.
const None = "none"

// NoCells is the List that None stands for.
func NoCells() List { return List{{IsNone: true}} }

// ErrNone is of what needs containers of this machine.
var ErrNone = errors.New("this daemon runs no containers on its own machine: it was started with --cells none")

// List is the cells; without one, the machine is one cell.
type List []Cell

// Cell is a logical cell that the machine is carved into. A container shares the
// memory of its cell and no more.
type Cell struct {
	Name       string    `yaml:"name"`
	Tags       []string  `yaml:"tags"`
	Required   []string  `yaml:"required_tags"`      // tags, too; the cell takes only what requires all of them
	Zone       string    `yaml:"zone"`               // "": DefaultZone
	MemoryMB   Megabytes `yaml:"memory"`             // 0: an equal part of what the cells that name theirs leave
	DiskMB     Megabytes `yaml:"disk"`               // 0: like MemoryMB
	Containers int       `yaml:"containers"`         // 0: 250, Diego's
	Preloaded  Preloaded `yaml:"preloaded_rootfses"` // nil: Config.Preloaded
	Providers  []string  `yaml:"rootfs_providers"`   // nil: Config.Providers

	IsNone bool `yaml:"-"` // for no cell
}

// Preloaded maps the name of a root filesystem to what it is: a stack, a path or
// an image. "" is the stack of that name.
type Preloaded map[string]string

// UnmarshalYAML takes a list of stacks, too.
func (p *Preloaded) UnmarshalYAML(n *yaml.Node) error {
	*p = Preloaded{}
	if n.Kind != yaml.SequenceNode {
		return n.Decode((*map[string]string)(p))
	}
	var names []string
	if err := n.Decode(&names); err != nil {
		return err
	}
	for _, name := range names {
		(*p)[name] = ""
	}
	return nil
}

// Megabytes are written with a unit, like 512M.
type Megabytes int

// UnmarshalYAML reads a size.
func (m *Megabytes) UnmarshalYAML(n *yaml.Node) error {
	bytes, ok := manifest.ParseSize(n.Value)
	if !ok || bytes < 1<<20 || bytes > 1<<60 {
		return fmt.Errorf("line %d: invalid size %q: give 1M or more, like 512M or 4G", n.Line, n.Value)
	}
	*m = Megabytes(bytes >> 20)
	return nil
}

// DefaultZone is the zone of cells that name none, as BOSH's examples call the
// first.
const DefaultZone = "z1"

// defaultContainers is how many containers Diego gives a cell.
const defaultContainers = 250

var cellPattern = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// Normalize fills in the defaults and checks the cells; errors name the field.
func (c *Config) Normalize() error {
	if c.Providers == nil {
		c.Providers = []string{string(reference.SchemeDocker), string(reference.SchemeOCI)}
	}
	if len(c.Cells) == 1 && c.Cells[0].IsNone {
		c.None, c.Cells = true, nil
	}
	faults := []error{c.checkNone(), checkProviders("rootfs_providers", c.Providers), checkPreloaded("preloaded_rootfses", c.Preloaded)}
	seen := map[string]bool{}
	for i := range c.Cells {
		cell, field := &c.Cells[i], fmt.Sprintf("cells[%d]", i)
		if !cellPattern().MatchString(cell.Name) {
			faults = append(faults, fmt.Errorf("%s.name %q: give it up to 63 letters, digits, '.', '_' and '-'", field, cell.Name))
		}
		if seen[strings.ToLower(cell.Name)] {
			faults = append(faults, fmt.Errorf("%s.name %q: another cell has it; give each its own", field, cell.Name))
		}
		seen[strings.ToLower(cell.Name)] = true
		faults = append(faults, cell.normalize(field), checkProviders(field+".rootfs_providers", cell.Providers), checkPreloaded(field+".preloaded_rootfses", cell.Preloaded))
		if cell.Preloaded == nil {
			cell.Preloaded = c.Preloaded
		}
		if cell.Providers == nil {
			cell.Providers = c.Providers
		}
	}
	return errors.Join(append(faults, c.checkClusters(), c.checkRegistry(), c.checkRegistryListen())...)
}

// checkNone refuses a daemon on which nothing could run.
func (c *Config) checkNone() error {
	if c.None && len(c.Kubernetes) == 0 {
		return errors.New("invalid --cells none: give --kubernetes, too: otherwise there is nothing to run apps on")
	}
	return nil
}

func (cell *Cell) normalize(field string) error {
	var faults []error
	for name, n := range map[string]int{"memory": int(cell.MemoryMB), "disk": int(cell.DiskMB), "containers": cell.Containers} {
		if n < 0 {
			faults = append(faults, fmt.Errorf("%s.%s is negative: give a positive one, or leave it out", field, name))
		}
	}
	if cell.Containers == 0 {
		cell.Containers = defaultContainers
	}
	if cell.Zone = strings.TrimSpace(cell.Zone); cell.Zone == "" {
		cell.Zone = DefaultZone
	}
	if !cellPattern().MatchString(cell.Zone) {
		faults = append(faults, fmt.Errorf("%s.zone %q: give it up to 63 letters, digits, '.', '_' and '-'", field, cell.Zone))
	}
	var err error
	cell.Tags, err = normalTags(field+".tags", cell.Tags)
	faults = append(faults, err)
	cell.Required, err = normalTags(field+".required_tags", cell.Required)
	for _, tag := range cell.Required {
		if !slices.Contains(cell.Tags, tag) {
			cell.Tags = append(cell.Tags, tag)
		}
	}
	return errors.Join(append(faults, err)...)
}

// normalTags checks tags, and writes them in lower case.
func normalTags(field string, given []string) ([]string, error) {
	var faults []error
	tags := make([]string, 0, len(given))
	for i, tag := range given {
		tag = strings.ToLower(strings.TrimSpace(tag))
		switch {
		case tag == "":
			faults = append(faults, fmt.Errorf("%s[%d] is empty: name the tag, or leave it out", field, i))
		case len(tag) > lrp.MaxTagLength:
			faults = append(faults, fmt.Errorf("%s[%d] %q has %d characters: shorten it to fewer than %d", field, i, tag, len(tag), lrp.MaxTagLength+1))
		}
		tags = append(tags, tag)
	}
	return tags, errors.Join(faults...)
}

func checkProviders(field string, providers []string) error {
	for i, p := range providers {
		if p != string(reference.SchemeDocker) && p != string(reference.SchemeOCI) {
			return fmt.Errorf("%s[%d] %q: the providers are docker and oci", field, i, p)
		}
	}
	return nil
}

// checkPreloaded wants a name that a stack may have, and a stack, a path or an
// image's reference for each.
func checkPreloaded(field string, preloaded Preloaded) error {
	for name, from := range preloaded {
		if _, err := reference.Parse(string(reference.SchemePreloaded) + ":" + name); err != nil {
			return fmt.Errorf("%s.%s: %w", field, name, err)
		}
		if from == "" || strings.HasPrefix(from, "/") {
			continue
		}
		if !strings.Contains(from, ":") {
			from = string(reference.SchemePreloaded) + ":" + from
		}
		if _, err := reference.Parse(from); err != nil {
			return fmt.Errorf("%s.%s: give the name of a stack, the path of a directory or archive, or docker://host/name:tag: %w", field, name, err)
		}
	}
	return nil
}

// share gives the cells that name no memory or disk an equal part of what the
// others leave of the machine's.
func share(cells List, machine lrp.Cell) List {
	cells = append(List(nil), cells...)
	for _, r := range []struct {
		of    func(*Cell) *Megabytes
		total int
	}{
		{func(c *Cell) *Megabytes { return &c.MemoryMB }, machine.MemoryMB},
		{func(c *Cell) *Megabytes { return &c.DiskMB }, machine.DiskMB},
	} {
		left, open := Megabytes(r.total), 0
		for i := range cells {
			left -= *r.of(&cells[i])
			if *r.of(&cells[i]) == 0 {
				open++
			}
		}
		for i := range cells {
			if n := r.of(&cells[i]); *n == 0 {
				*n = max(left/Megabytes(max(open, 1)), 1)
			}
		}
	}
	return cells
}

// Preloads are the root filesystems that the configuration has made of paths
// and images, by the name of the stack that they become.
func (c *Config) Preloads() (map[string]string, error) {
	all := map[string]string{}
	lists := []Preloaded{c.Preloaded}
	for _, cell := range c.Cells {
		lists = append(lists, cell.Preloaded)
	}
	for _, list := range lists {
		for name, from := range list {
			if stackOf(name, from) != name || from == "" {
				continue
			}
			if had, ok := all[name]; ok && had != from {
				return nil, fmt.Errorf("preloaded_rootfses.%s is %s and %s: give the second another name", name, had, from)
			}
			all[name] = from
		}
	}
	return all, nil
}
