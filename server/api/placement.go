package api

import (
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// outdatedPlacement is what the stats of an instance say while it runs where an
// earlier placement allowed it.
const outdatedPlacement = "the placement of the app has changed: restart the app to apply that"

// outdated reports whether the next start of a process would ask for other cells
// than its instances were started with.
func outdated(c *call, p *cf.Process) bool {
	const kind = "outdated placement"
	if is, ok := c.recalled[kind+" "+p.GUID]; ok { // of another instance
		return is.(bool)
	}
	is := isOutdated(c, p)
	c.remember(kind, p.GUID, is)
	return is
}

func isOutdated(c *call, p *cf.Process) bool {
	app, err := store.Apps.Get(c.Tx, p.AppGUID)
	if err != nil || app.State != cf.Started {
		return false
	}
	now, err := c.Tx.PlacementOf(app)
	return err == nil && !now.Same(p.Placement)
}

// viewPlacement is what a process was started with.
func viewPlacement(c *call, p *cf.Process) doc {
	return doc{"pool": control.OrNil(p.Placement.Pool), "require": orNone(p.Placement.Require), "disallow": orNone(p.Placement.Disallow),
		"isolation_segment": control.OrNil(p.Placement.Segment), "outdated": outdated(c, p)}
}

// placedStats adds to the stats of an instance that is there where it may run.
func placedStats(c *call, p *cf.Process, d doc) doc {
	d["isolation_segment"] = control.OrNil(p.Placement.Segment)
	if d["details"] == nil && d["state"] != "DOWN" && outdated(c, p) {
		d["details"] = outdatedPlacement
	}
	return d
}
