package server

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"cupola/rootfs/reference"
	"cupola/runtime/lrp"
)

// CellConfig is a logical cell that the machine is carved into. A container
// shares the memory of its cell and no more.
type CellConfig struct {
	Name       string
	Tags       []string
	MemoryMB   int               // 0: an equal part of what the cells leave that name theirs
	DiskMB     int               // 0: like MemoryMB
	Containers int               // 0: 250, Diego's
	Preloaded  map[string]string // nil: Config.Preloaded
	Providers  []string          // nil: Config.Providers
}

// defaultContainers is how many containers Diego gives a cell.
const defaultContainers = 250

var cellPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// normalizeCells fills in the defaults of the cells and says what cannot be, by
// the name of the field.
func (c *Config) normalizeCells() error {
	if c.Providers == nil {
		c.Providers = []string{string(reference.SchemeDocker), string(reference.SchemeOCI)}
	}
	faults := []error{checkProviders("rootfs_providers", c.Providers), checkPreloaded("preloaded_rootfses", c.Preloaded)}
	seen := map[string]bool{}
	for i := range c.Cells {
		cell, field := &c.Cells[i], fmt.Sprintf("cells[%d]", i)
		if !cellPattern.MatchString(cell.Name) {
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
	return errors.Join(faults...)
}

func (cell *CellConfig) normalize(field string) error {
	var faults []error
	for name, n := range map[string]int{"memory": cell.MemoryMB, "disk": cell.DiskMB, "containers": cell.Containers} {
		if n < 0 {
			faults = append(faults, fmt.Errorf("%s.%s is negative: give a positive one, or leave it out", field, name))
		}
	}
	if cell.Containers == 0 {
		cell.Containers = defaultContainers
	}
	tags := make([]string, 0, len(cell.Tags))
	for i, tag := range cell.Tags {
		tag = strings.ToLower(strings.TrimSpace(tag))
		switch {
		case tag == "":
			faults = append(faults, fmt.Errorf("%s.tags[%d] is empty: name the tag, or leave it out", field, i))
		case len(tag) > lrp.MaxTagLength:
			faults = append(faults, fmt.Errorf("%s.tags[%d] %q has %d characters: shorten it to fewer than %d", field, i, tag, len(tag), lrp.MaxTagLength+1))
		}
		tags = append(tags, tag)
	}
	cell.Tags = tags
	return errors.Join(faults...)
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
func checkPreloaded(field string, preloaded map[string]string) error {
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
func share(cells []CellConfig, machine lrp.Cell) []CellConfig {
	cells = append([]CellConfig(nil), cells...)
	for _, r := range []struct {
		of    func(*CellConfig) *int
		total int
	}{
		{func(c *CellConfig) *int { return &c.MemoryMB }, machine.MemoryMB},
		{func(c *CellConfig) *int { return &c.DiskMB }, machine.DiskMB},
	} {
		left, open := r.total, 0
		for i := range cells {
			left -= *r.of(&cells[i])
			if *r.of(&cells[i]) == 0 {
				open++
			}
		}
		for i := range cells {
			if n := r.of(&cells[i]); *n == 0 {
				*n = max(left/max(open, 1), 1)
			}
		}
	}
	return cells
}
