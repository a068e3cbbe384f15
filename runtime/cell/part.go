package cell

import (
	"maps"
	"slices"
	"sync"

	"cupola/rootfs/reference"
	"cupola/runtime/lrp"
)

// PartConfig says what a Part is made of.
type PartConfig struct {
	Presence lrp.Cell
	// Group is the container.Group that bounds the part; "" is none.
	Group string
	// Preloaded names what is mounted for a preloaded root filesystem by its name.
	// One that it has not is mounted as it stands.
	Preloaded map[string]string
}

// Part is a logical cell: containers are placed on one. The parts of a machine
// share its process, its network and its images.
type Part struct {
	cell *Cell
	cfg  PartConfig

	mu       sync.Mutex
	rootFSes []string
}

func newPart(c *Cell, cfg PartConfig) *Part {
	return &Part{cell: c, cfg: cfg, rootFSes: cfg.Presence.RootFSes}
}

// makeParts makes the parts that the configuration names, and one that takes
// nothing new for each other that containers of an earlier Run are on.
func (c *Cell) makeParts() error {
	for _, cfg := range c.cfg.Parts {
		c.parts = append(c.parts, newPart(c, cfg))
	}
	if c.cfg.Parts == nil {
		c.parts = []*Part{newPart(c, PartConfig{Presence: c.cfg.Presence})}
	}
	f := findings{all: map[string][]string{}, records: map[string]record{}}
	if err := c.surveyState(f); err != nil {
		return err
	}
	left := map[string]bool{}
	for _, r := range f.records {
		if id := c.partID(r.Container); c.part(id) == nil {
			left[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		c.parts = append(c.parts, newPart(c, PartConfig{Presence: lrp.Cell{ID: id, Leaving: true}}))
	}
	return nil
}

// partID is the part that a container is on. Those of before there were parts
// are on the machine's.
func (c *Cell) partID(spec lrp.Container) string {
	if spec.CellID == "" {
		return c.cfg.Presence.ID
	}
	return spec.CellID
}

// part finds a part; nil if there is none with that ID.
func (c *Cell) part(id string) *Part {
	for _, p := range c.parts {
		if p.cfg.Presence.ID == id {
			return p
		}
	}
	return nil
}

// Parts are the logical cells: those of the configuration, in its order, then
// those that it no longer names and that had containers when New looked.
func (c *Cell) Parts() []*Part { return slices.Clone(c.parts) }

// Start is Cell.Start on this part.
func (p *Part) Start(spec lrp.Container) {
	spec.CellID = p.cfg.Presence.ID
	p.cell.Start(spec)
}

// Stop is Cell.Stop.
func (p *Part) Stop(guid string) { p.cell.Stop(guid) }

// SetFiles is Cell.setFiles.
func (p *Part) SetFiles(guid string, files []lrp.File) error { return p.cell.setFiles(guid, files) }

// SetLogTags is Cell.setLogTags.
func (p *Part) SetLogTags(guid string, tags map[string]string) error {
	return p.cell.setLogTags(guid, tags)
}

// Stats is Cell.Stats.
func (p *Part) Stats(guid string) (lrp.Stats, bool) { return p.cell.Stats(guid) }

// Containers lists what the part has, by GUID, like Cell.Containers.
func (p *Part) Containers() []lrp.ContainerStatus {
	all := p.cell.Containers()
	return slices.DeleteFunc(all, func(s lrp.ContainerStatus) bool { return s.CellID != p.cfg.Presence.ID })
}

// Presence returns the part's identity and capacity.
func (p *Part) Presence() lrp.Cell {
	presence := p.cfg.Presence
	p.mu.Lock()
	defer p.mu.Unlock()
	presence.RootFSes = slices.Clone(p.rootFSes)
	return presence
}

// SetRootFSes changes which root filesystems Presence offers. What runs goes
// on.
func (p *Part) SetRootFSes(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rootFSes = slices.Clone(names)
}

// rootFS is what is mounted for a root filesystem.
func (p *Part) rootFS(name string) string {
	if p == nil || len(p.cfg.Preloaded) == 0 {
		return name
	}
	scheme, key := reference.SplitScheme(name)
	if scheme != reference.SchemePreloaded || p.cfg.Preloaded[key] == "" {
		return name
	}
	return p.cfg.Preloaded[key]
}

// group is the cgroup of the part's containers.
func (p *Part) group() string {
	if p == nil {
		return ""
	}
	return p.cfg.Group
}
