package server

import (
	"maps"
	"slices"
	"strings"
	"syscall"

	"cupola/rootfs"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/server/databroker"
)

// CellID names the cell of a machine that is not carved into several.
const CellID = "cupola"

// machine is what this machine has: its memory and disk, and Diego's 250
// containers.
func (h *house) machine() lrp.Cell {
	p := lrp.Cell{ID: CellID, Containers: defaultContainers, MemoryMB: memoryMB(), DiskMB: 1 << 20}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(h.DataDir, &fs); err == nil {
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
func (h *house) cells() []CellConfig {
	m := h.machine()
	if len(h.Cells) == 0 {
		return []CellConfig{{Name: m.ID, MemoryMB: m.MemoryMB, DiskMB: m.DiskMB, Containers: m.Containers, Preloaded: h.Preloaded, Providers: h.Providers}}
	}
	return share(h.Cells, m)
}

// fullShareMB is the memory of a container that has all of 1024 CPU shares, as
// Cloud Controller weighs them; a cell has those of its memory full of such.
const fullShareMB = 8192

// groups are the cgroups that hold the cells to their memory. A machine that is
// one cell needs none.
func (h *house) groups() (all []container.Group) {
	if len(h.Cells) == 0 {
		return nil
	}
	promised := 0
	for _, c := range h.cells() {
		promised += c.MemoryMB
		all = append(all, container.Group{Name: c.Name, MemoryBytes: int64(c.MemoryMB) << 20, CPUShares: uint64(max(c.MemoryMB*1024/fullShareMB, 2))})
	}
	if has := h.machine().MemoryMB; promised > has {
		h.Log.Warn("cells have more memory than the machine", "memory_mb", promised, "machine_mb", has)
	}
	return all
}

// parts are the cells for the executor.
func (h *house) parts() (all []cell.PartConfig) {
	for _, c := range h.cells() {
		p := cell.PartConfig{Preloaded: map[string]string{}, Presence: lrp.Cell{ID: c.Name, Tags: c.Tags, MemoryMB: c.MemoryMB, DiskMB: c.DiskMB, Containers: c.Containers,
			RootFSes: h.rootFSes(c.Preloaded), RootFSProviders: c.Providers}}
		if len(h.Cells) > 0 {
			p.Group = c.Name
		}
		for name := range c.Preloaded {
			p.Preloaded[name] = string(rootfs.SchemePreloaded) + ":" + stackOf(name, c.Preloaded[name])
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
func (h *house) rootFSes(preloaded map[string]string) []string {
	names := []string{}
	if preloaded == nil {
		for _, s := range h.roots.Stacks() {
			names = append(names, s.Name)
		}
		return names
	}
	for _, name := range slices.Sorted(maps.Keys(preloaded)) {
		if _, ok := h.roots.Stack(stackOf(name, preloaded[name])); ok {
			names = append(names, name)
		}
	}
	if _, named := preloaded[databroker.Stack]; !named && h.hasDataServices() && h.hasDataStack() {
		names = append(names, databroker.Stack)
	}
	return names
}

// offerRootFSes has the cells offer the stacks that are here now.
func (h *house) offerRootFSes() {
	parts := h.cell.Parts()
	for i, c := range h.cells() {
		parts[i].SetRootFSes(h.rootFSes(c.Preloaded))
	}
}

// alias is a stack by the name that the configuration gives it.
type alias struct{ name, of string }

// aliases are the names that the configuration gives to stacks that are here.
func (h *house) aliases() (all []alias) {
	names := map[string]string{}
	for _, c := range h.cells() {
		for name, from := range c.Preloaded {
			if of := stackOf(name, from); of != name {
				names[name] = of
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		_, taken := h.roots.Stack(name)
		if _, ok := h.roots.Stack(names[name]); ok && !taken {
			all = append(all, alias{name, names[name]})
		}
	}
	return all
}

// cellUse are the cells with what their containers have of them. One that is to
// go is left out once nothing is on it.
func (h *house) cellUse() []lrp.CellUse {
	all := []lrp.CellUse{}
	for _, p := range h.cell.Parts() {
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
