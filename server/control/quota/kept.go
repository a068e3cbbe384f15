package quota

import (
	"maps"

	"cupola/server/control"
	"cupola/store"
)

// ledger is what was counted in a transaction, by area and kind.
type ledger struct {
	counts map[entry]*count
	reads  int // how often rows were counted
}

type entry struct {
	area Area
	kind Kind // one
}

// count is what was counted once. It holds until a table that it was counted in
// changes. Routes are the exception: the transaction itself knows how many it
// adds and removes, and an update of a route, of which a manifest does many,
// changes no number.
type count struct {
	usage   Usage
	tables  []string // that it was counted in
	written int      // of them, when it was counted
	routes  added
	spaces  map[string]bool // whether they are in the area, of those with routes that were added
}

// added are the routes of an area that a transaction added, less those it removed.
type added struct{ routes, ports int }

// usageNow is UsageOf that counts again only what has changed since the session
// counted it.
func usageNow(c *control.Session, a, domains Area, of Kind) (u Usage, err error) {
	l := control.Kept[ledger](c)
	for kind := Processes; kind <= of; kind <<= 1 {
		if of&kind == 0 {
			continue
		}
		at := a
		if kind == Domains {
			at = domains
		}
		one, err := l.usage(c, entry{at, kind})
		if err != nil {
			return u, err
		}
		u = u.with(one)
	}
	return u, nil
}

// with adds the usage of other kinds.
func (u Usage) with(o Usage) Usage {
	if len(o.Sizes) > 0 {
		u.Sizes = maps.Clone(o.Sizes)
	}
	u.MemoryMB, u.Instances, u.Tasks = u.MemoryMB+o.MemoryMB, u.Instances+o.Instances, u.Tasks+o.Tasks
	u.Routes, u.Ports, u.Domains = u.Routes+o.Routes, u.Ports+o.Ports, u.Domains+o.Domains
	u.Services, u.Keys = u.Services+o.Services, u.Keys+o.Keys
	u.LogRate, u.Unlimited = u.LogRate+o.LogRate, u.Unlimited+o.Unlimited
	return u
}

// usage is what one kind uses now.
func (l *ledger) usage(c *control.Session, e entry) (Usage, error) {
	k, tx := l.counts[e], c.Tx
	if k == nil || k.written != tx.Written(k.tables...) {
		return l.count(c, e)
	}
	if e.kind != Routes {
		return k.usage, nil
	}
	if _, known := tx.RoutesAdded(); !known {
		return l.count(c, e)
	}
	now, err := k.addedIn(tx, e.area)
	u := k.usage
	u.Routes += now.routes - k.routes.routes
	u.Ports += now.ports - k.routes.ports
	return u, err
}

// count counts a kind, and keeps what it counted.
func (l *ledger) count(c *control.Session, e entry) (u Usage, err error) {
	l.reads++
	k, tx := &count{spaces: map[string]bool{}}, c.Tx
	k.tables, err = tx.TablesOf(func() (err error) {
		k.usage, err = UsageOf(c, e.area, e.area, e.kind)
		return err
	})
	if err != nil {
		return u, err
	}
	if e.kind == Routes {
		k.tables = control.Without(k.tables, func(table string) bool { return table == store.Routes.Name() })
		if k.routes, err = k.addedIn(tx, e.area); err != nil {
			return u, err
		}
	}
	k.written = tx.Written(k.tables...)
	if l.counts == nil {
		l.counts = map[entry]*count{}
	}
	l.counts[e] = k
	return k.usage, nil
}

// addedIn reports how many routes the transaction has added in the area.
func (k *count) addedIn(tx *store.Tx, a Area) (n added, err error) {
	groups, _ := tx.RoutesAdded()
	for g, more := range groups {
		if _, known := k.spaces[g.SpaceGUID]; !known {
			if k.spaces[g.SpaceGUID], err = a.has(tx, g.SpaceGUID); err != nil {
				return n, err
			}
		}
		if !k.spaces[g.SpaceGUID] {
			continue
		}
		n.routes += more
		if g.Port {
			n.ports += more
		}
	}
	return n, nil
}

// has reports whether a space is in the area; one that is gone is not.
func (a Area) has(tx *store.Tx, spaceGUID string) (bool, error) {
	if a.org() == "" {
		return a.guid == "" || a.guid == spaceGUID, nil
	}
	s, err := store.Spaces.Get(tx, spaceGUID)
	return err == nil && s.OrgGUID == a.guid, control.IfFound(err)
}
