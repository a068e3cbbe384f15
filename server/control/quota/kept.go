package quota

import (
	"maps"

	"cupola/server/control"
)

// ledger is what was counted in a transaction, by area and kind.
type ledger map[entry]*count

type entry struct {
	area Area
	kind Kind // one
}

// count is what was counted once. It holds until a table that it was counted in
// changes.
type count struct {
	usage   Usage
	tables  []string // that it was counted in
	written int      // of them, when it was counted
}

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
	if k := (*l)[e]; k != nil && k.written == c.Tx.Written(k.tables...) {
		return k.usage, nil
	}
	k := &count{}
	var err error
	k.tables, err = c.Tx.TablesOf(func() (err error) {
		k.usage, err = UsageOf(c, e.area, e.area, e.kind)
		return err
	})
	if err != nil {
		return Usage{}, err
	}
	k.written = c.Tx.Written(k.tables...)
	if *l == nil {
		*l = ledger{}
	}
	(*l)[e] = k
	return k.usage, nil
}
