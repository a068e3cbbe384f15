package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"cupola/server"
	"cupola/server/manifest"
)

// cellFlags say into which cells the machine is carved, and what those offer.
type cellFlags struct {
	Cells             cellList  `help:"Divide the machine into cells: a YAML list of {name, tags, memory, disk, containers, preloaded_rootfses, rootfs_providers}." placeholder:"YAML" env:"CUPOLA_CELLS"`
	PreloadedRootFSes preloaded `name:"preloaded-rootfses" help:"Root filesystems of cells, as YAML: a map of names to stacks, paths or images, or a list of stacks; by default all stacks." placeholder:"YAML" env:"CUPOLA_PRELOADED_ROOTFSES"`
	RootFSProviders   []string  `name:"rootfs-providers" help:"Providers of further root filesystems: docker, oci; by default both." placeholder:"SCHEME" env:"CUPOLA_ROOTFS_PROVIDERS"`
}

func (f cellFlags) apply(c *server.Config) {
	c.Preloaded, c.Providers = f.PreloadedRootFSes, f.RootFSProviders
	for _, e := range f.Cells {
		c.Cells = append(c.Cells, server.CellConfig{Name: e.Name, Tags: e.Tags, MemoryMB: int(e.Memory), DiskMB: int(e.Disk), Containers: e.Containers,
			Preloaded: e.Preloaded, Providers: e.Providers})
	}
}

// cellList is the value of cells.
type cellList []cellEntry

type cellEntry struct {
	Name       string    `yaml:"name"`
	Tags       []string  `yaml:"tags"`
	Memory     megabytes `yaml:"memory"`
	Disk       megabytes `yaml:"disk"`
	Containers int       `yaml:"containers"`
	Preloaded  preloaded `yaml:"preloaded_rootfses"`
	Providers  []string  `yaml:"rootfs_providers"`
}

// Decode reads the list from the configuration file, or from a flag's text.
func (l *cellList) Decode(ctx *kong.DecodeContext) error { return decodeFlag(ctx, "cells", l) }

// preloaded maps the name of a root filesystem to what it is.
type preloaded map[string]string

// Decode is like cellList's.
func (p *preloaded) Decode(ctx *kong.DecodeContext) error {
	return decodeFlag(ctx, "preloaded_rootfses", p)
}

// UnmarshalYAML takes a list of stacks too.
func (p *preloaded) UnmarshalYAML(n *yaml.Node) error {
	*p = preloaded{}
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

// megabytes are written with a unit, like 512M.
type megabytes int

// UnmarshalYAML reads a size.
func (m *megabytes) UnmarshalYAML(n *yaml.Node) error {
	bytes, ok := manifest.ParseSize(n.Value)
	if !ok || bytes < 1<<20 || bytes > 1<<60 {
		return fmt.Errorf("line %d: invalid size %q: give 1M or more, like 512M or 4G", n.Line, n.Value)
	}
	*m = megabytes(bytes >> 20)
	return nil
}

// decodeFlag reads YAML into out: what the configuration file has parsed, or
// the text of a flag.
func decodeFlag(ctx *kong.DecodeContext, name string, out any) error {
	t, err := ctx.Scan.PopValue(name)
	if err != nil {
		return err
	}
	text, ok := t.Value.(string)
	if !ok {
		encoded, err := yaml.Marshal(t.Value)
		if err != nil {
			return err
		}
		text = string(encoded)
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(out); err != nil {
		return yamlFault(err)
	}
	return nil
}

// goType is what the YAML decoder calls a place by.
var goType = regexp.MustCompile(` (?:into|in type) [\w.\[\]*]+`)

// yamlFault is an error of the decoder without the names of types of this program.
func yamlFault(err error) error {
	fault, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return err
	}
	return errors.New(goType.ReplaceAllString(strings.Join(fault.Errors, "; "), ""))
}
