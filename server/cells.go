package server

import (
	"maps"
	"slices"
	"strings"
	"syscall"

	"cupola/rootfs/reference"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/server/databroker"
)

// CellID names the cell of a machine that is not carved into several.
const CellID = "cupola"

// machine is what this machine has: its memory and disk, and Diego's 250
// containers.
func (d *daemon) machine() lrp.Cell {
	p := lrp.Cell{ID: CellID, Containers: defaultContainers, MemoryMB: memoryMB(), DiskMB: 1 << 20}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(d.DataDir, &fs); err == nil {
		p.DiskMB = int(uint64(fs.Bsize) * fs.Blocks >> 20)
	}
	return p
}

func memoryMB() int {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 1 << 10
	}
	return int(info.Totalram * uint64(info.Unit) >> 20)
}

// cells are the cells of the configuration; without one, the machine is one.
func (d *daemon) cells() []CellConfig {
	m := d.machine()
	if len(d.Cells) == 0 {
		return []CellConfig{{Name: m.ID, MemoryMB: m.MemoryMB, DiskMB: m.DiskMB, Containers: m.Containers, Preloaded: d.Preloaded, Providers: d.Providers}}
	}
	return share(d.Cells, m)
}

// fullShareMB is the memory of a container that has all of 1024 CPU shares, as
// Cloud Controller weighs them; a cell has those of its memory full of such.
const fullShareMB = 8192

// groups are the cgroups that hold the cells to their memory. A machine that is
// one cell needs none.
func (d *daemon) groups() (all []container.Group) {
	if len(d.Cells) == 0 {
		return nil
	}
	promised := 0
	for _, c := range d.cells() {
		promised += c.MemoryMB
		all = append(all, container.Group{Name: c.Name, MemoryBytes: int64(c.MemoryMB) << 20, CPUShares: uint64(max(c.MemoryMB*1024/fullShareMB, 2))})
	}
	if has := d.machine().MemoryMB; promised > has {
		d.Log.Warn("cells have more memory than the machine", "memory_mb", promised, "machine_mb", has)
	}
	return all
}

// parts are the cells for the executor.
func (d *daemon) parts() (all []cell.PartConfig) {
	for _, c := range d.cells() {
		p := cell.PartConfig{Preloaded: map[string]string{}, Presence: lrp.Cell{ID: c.Name, Tags: c.Tags, MemoryMB: c.MemoryMB, DiskMB: c.DiskMB, Containers: c.Containers,
			RootFSes: d.rootFSes(c.Preloaded), RootFSProviders: c.Providers}}
		if len(d.Cells) > 0 {
			p.Group = c.Name
		}
		for name := range c.Preloaded {
			p.Preloaded[name] = string(reference.SchemePreloaded) + ":" + stackOf(name, c.Preloaded[name])
		}
		all = append(all, p)
	}
	return all
}

// stackOf is the stack that a preloaded root filesystem is: the one of its name
// unless the configuration names another. A path or an image becomes the stack.
func stackOf(name, from string) string {
	if from == "" || strings.ContainsAny(from, ":/") {
		return name
	}
	return from
}

// rootFSes are the names of those preloaded root filesystems that are here; nil
// is all stacks.
func (d *daemon) rootFSes(preloaded map[string]string) []string {
	names := []string{}
	if preloaded == nil {
		for _, s := range d.roots.Stacks.All() {
			names = append(names, s.Name)
		}
		return names
	}
	for _, name := range slices.Sorted(maps.Keys(preloaded)) {
		if _, ok := d.roots.Stacks.Get(stackOf(name, preloaded[name])); ok {
			names = append(names, name)
		}
	}
	if _, named := preloaded[databroker.Stack]; !named && d.hasDataServices() && d.hasDataStack() {
		names = append(names, databroker.Stack)
	}
	return names
}

// offerRootFSes has the cells offer the stacks that are here now.
func (d *daemon) offerRootFSes() {
	parts := d.cell.Parts()
	for i, c := range d.cells() {
		parts[i].SetRootFSes(d.rootFSes(c.Preloaded))
	}
}

// alias is a stack by the name that the configuration gives it.
type alias struct{ name, of string }

// aliases are the names that the configuration gives to stacks that are here.
func (d *daemon) aliases() (all []alias) {
	names := map[string]string{}
	for _, c := range d.cells() {
		for name, from := range c.Preloaded {
			if of := stackOf(name, from); of != name {
				names[name] = of
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		_, taken := d.roots.Stacks.Get(name)
		if _, ok := d.roots.Stacks.Get(names[name]); ok && !taken {
			all = append(all, alias{name, names[name]})
		}
	}
	return all
}

// cellUse are the cells with what their containers have of them. One that is to
// go is left out once nothing is on it.
func (d *daemon) cellUse() []lrp.CellUse {
	all := []lrp.CellUse{}
	for _, p := range d.cell.Parts() {
		u := lrp.CellUse{Cell: p.Presence()}
		for _, s := range p.Containers() {
			u.UsedMemoryMB, u.UsedDiskMB, u.UsedContainers = u.UsedMemoryMB+s.MemoryMB, u.UsedDiskMB+s.DiskMB, u.UsedContainers+1
		}
		if !u.Leaving || u.UsedContainers > 0 {
			all = append(all, u)
		}
	}
	return all
}
