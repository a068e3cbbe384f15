package api

import (
	"maps"
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
)

// viewCell is a cell as Diego's Receptor showed it, with what the proposals of
// several root filesystems and of placement pools add.
func viewCell(u lrp.CellUse) doc {
	return doc{
		"cell_id": u.ID, "zone": u.Zone, "tags": orNone(u.Tags), "required_tags": orNone(u.RequiredTags),
		"preloaded_rootfses": orNone(u.RootFSes), "rootfs_providers": orNone(u.RootFSProviders),
		"capacity":    doc{"memory_mb": u.MemoryMB, "disk_mb": u.DiskMB, "containers": u.Containers},
		"used":        doc{"memory_mb": u.UsedMemoryMB, "disk_mb": u.UsedDiskMB, "containers": u.UsedContainers},
		"leaving":     u.Leaving,
		"unreachable": u.Unreachable,
		"problem":     u.Problem,
		"mend":        u.Mend,
	}
}

// listCells lists the cells to admins, with include=instances also what runs on
// each. It is no v3 list: there are no pages.
func listCells(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	cells := []doc{}
	for _, u := range c.s.Cells() {
		d := viewCell(u)
		if c.Request.URL.Query().Get("include") == "instances" {
			rows, err := store.ActualLRPs.By(c.Tx, "cell_ids", u.ID)
			if err != nil {
				return nil, err
			}
			asleep, err := sleepingLRPs(c)
			if err != nil {
				return nil, err
			}
			d["instances"] = views(c, rows, func(c *call, a *lrp.Actual) doc {
				return inSleep(asleep[a.ProcessGUID], viewCellInstance(c, a))
			})
		}
		cells = append(cells, d)
	}
	return ok(cells)
}

// viewCellInstance is an instance on a cell: of an app's process by the GUID that
// the v3 API has, of others by that of the BBS.
func viewCellInstance(_ *call, a *lrp.Actual) doc {
	guid := a.ProcessGUID
	if a.Domain == lrp.DomainApps {
		guid = desire.CFProcess(guid)
	}
	return doc{"domain": a.Domain, "process_guid": guid, "index": a.Index, "instance_guid": a.InstanceGUID, "state": string(a.State), "since": a.Since}
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
