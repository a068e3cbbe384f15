package cells

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"syscall"

	"cupola/rootfs"
	"cupola/rootfs/reference"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/server/bulkhead"
	"cupola/server/databroker"
)

// Machine is this machine as the configuration carves it into cells.
type Machine struct {
	Config
	DataDir string        // on the disk that containers have their files on
	Roots   *rootfs.Store // the stacks that are here
	// DataServices offers the stacks of the built-in service broker, too.
	DataServices bool
}

// cellID names the cell of a machine that is not carved into several.
const cellID = "cupola"

// Presence is what this machine has: its memory and disk, and Diego's 250
// containers.
func (m Machine) Presence() lrp.Cell {
	p := lrp.Cell{ID: cellID, Containers: defaultContainers, MemoryMB: memoryMB(), DiskMB: 1 << 20}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(m.DataDir, &fs); err == nil {
		p.DiskMB = int(uint64(fs.Bsize) * fs.Blocks >> 20)
	}
	return p
}

func memoryMB() int {
	if total, _ := bulkhead.Memory("/"); total > 0 {
		return int(total >> 20)
	}
	return 1 << 10
}

// cells are the cells of the configuration; without one, the machine is one, unless it is none.
func (m Machine) cells() []Cell {
	if m.None {
		return nil
	}
	p := m.Presence()
	if len(m.Config.Cells) == 0 {
		return []Cell{{Name: p.ID, MemoryMB: Megabytes(p.MemoryMB), DiskMB: Megabytes(p.DiskMB), Containers: p.Containers, Preloaded: m.Preloaded, Providers: m.Providers}}
	}
	return share(m.Config.Cells, p)
}

// fullShareMB is the memory of a container that has all of 1024 CPU shares, as
// Cloud Controller weighs them; a cell has those of its memory full of such.
const fullShareMB = 8192

// Groups are the cgroups that hold the cells to their memory. A machine that is
// one cell needs none.
func (m Machine) Groups(log *slog.Logger) (all []container.Group) {
	if len(m.Config.Cells) == 0 {
		return nil
	}
	promised := 0
	for _, c := range m.cells() {
		promised += int(c.MemoryMB)
		all = append(all, container.Group{Name: c.Name, MemoryBytes: int64(c.MemoryMB) << 20, CPUShares: uint64(max(c.MemoryMB*1024/fullShareMB, 2))})
	}
	if has := m.Presence().MemoryMB; promised > has {
		log.Warn("cells have more memory than the machine", "memory_mb", promised, "machine_mb", has)
	}
	return all
}

// Parts are the cells for the executor.
func (m Machine) Parts() []cell.PartConfig {
	all := []cell.PartConfig{}
	for _, c := range m.cells() {
		p := cell.PartConfig{Preloaded: map[string]string{}, Presence: lrp.Cell{ID: c.Name, Tags: c.Tags, RequiredTags: c.Required, Zone: cmp.Or(c.Zone, DefaultZone), MemoryMB: int(c.MemoryMB), DiskMB: int(c.DiskMB), Containers: c.Containers,
			RootFSes: m.rootFSes(c.Preloaded), RootFSProviders: c.Providers}}
		if len(m.Config.Cells) > 0 {
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
func (m Machine) rootFSes(preloaded Preloaded) []string {
	names := []string{}
	if preloaded == nil {
		for _, s := range m.Roots.Stacks.All() {
			names = append(names, s.Name)
		}
		return names
	}
	for _, name := range slices.Sorted(maps.Keys(preloaded)) {
		if _, ok := m.Roots.Stacks.Get(stackOf(name, preloaded[name])); ok {
			names = append(names, name)
		}
	}
	if m.DataServices {
		names = append(names, m.serviceStacks(preloaded)...)
	}
	return names
}

// serviceStacks are the stacks of the built-in service broker that are here and are not named.
func (m Machine) serviceStacks(preloaded Preloaded) (names []string) {
	for _, name := range databroker.Stacks() {
		_, named := preloaded[name]
		if _, ok := m.Roots.Stacks.Get(name); ok && !named {
			names = append(names, name)
		}
	}
	return names
}

// RootFSes are the names of the root filesystems that clusters have from here: those of cells that name none.
func (m Machine) RootFSes() []string { return m.rootFSes(m.Preloaded) }

// RootFS is the stack here, or the image, that is a root filesystem of RootFSes.
func (m Machine) RootFS(name string) string {
	scheme, key := reference.SplitScheme(name)
	if scheme != reference.SchemePreloaded {
		return name
	}
	return string(scheme) + ":" + stackOf(key, m.Preloaded[key])
}

// Offer updates what cells offer to the stacks that are here now.
func (m Machine) Offer(executor *cell.Cell) {
	parts := executor.Parts()
	for i, c := range m.cells() {
		parts[i].SetRootFSes(m.rootFSes(c.Preloaded))
	}
}

// Alias is a stack by the name that the configuration gives it.
type Alias struct{ Name, Of string }

// Aliases are the names that the configuration gives to stacks that are here.
func (m Machine) Aliases() (all []Alias) {
	names := map[string]string{}
	for _, c := range m.cells() {
		for name, from := range c.Preloaded {
			if of := stackOf(name, from); of != name {
				names[name] = of
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		_, taken := m.Roots.Stacks.Get(name)
		if _, ok := m.Roots.Stacks.Get(names[name]); ok && !taken {
			all = append(all, Alias{name, names[name]})
		}
	}
	return all
}

// Placed is a cell that containers are placed on.
type Placed interface {
	Start(lrp.Container)
	Stop(guid string)
	SetFiles(guid string, files []lrp.File) error
	SetLogTags(guid string, tags map[string]string) error
	Containers() []lrp.ContainerStatus
	Stats(guid string) (lrp.Stats, bool)
	Presence() lrp.Cell
}

// Uses are cells with what their containers use of them.
type Uses = []lrp.CellUse

// Use lists the cells with what their containers use of them. A cell that is
// leaving is left out once nothing runs on it.
func Use(cells []Placed) Uses {
	all := Uses{}
	for _, p := range cells {
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
