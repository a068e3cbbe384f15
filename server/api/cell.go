package api

import (
	"maps"
	"slices"
	"strings"

	"cupola/runtime/lrp"
)

// viewCell is a cell as Diego's Receptor showed it, with what the proposals of
// several root filesystems and of placement pools add.
func viewCell(u lrp.CellUse) doc {
	return doc{
		"cell_id": u.ID, "zone": u.Zone, "tags": orNone(u.Tags), "required_tags": orNone(u.RequiredTags),
		"preloaded_rootfses": orNone(u.RootFSes), "rootfs_providers": orNone(u.RootFSProviders),
		"capacity": doc{"memory_mb": u.MemoryMB, "disk_mb": u.DiskMB, "containers": u.Containers},
		"used":     doc{"memory_mb": u.UsedMemoryMB, "disk_mb": u.UsedDiskMB, "containers": u.UsedContainers},
		"leaving":  u.Leaving,
	}
}

// listCells lists the cells to admins. It is no v3 list: there are no pages.
func listCells(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	cells := []doc{}
	for _, u := range c.s.Cells() {
		cells = append(cells, viewCell(u))
	}
	return ok(cells)
}

// listTags lists the tags that cells have, each once.
func listTags(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	tags := map[string]bool{}
	for _, u := range c.s.Cells() {
		for _, t := range u.Tags {
			tags[strings.ToLower(t)] = true
		}
	}
	return ok(orNone(slices.Sorted(maps.Keys(tags))))
}
