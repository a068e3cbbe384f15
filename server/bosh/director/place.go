package director

import (
	"cmp"
	"fmt"
	"slices"

	"cupola/server/bosh"
	"cupola/server/bosh/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// match finds for each place the row that takes it, nil if there is none, and returns the
// other rows by index. A row keeps its index and AZ if it can, else at least its AZ.
// Places that are left go to rows of other AZs, rather than to new instances without
// their disks.
func match(rows []*cf.BOSHInstance, places []manifest.Instance) (matched, others []*cf.BOSHInstance) {
	others = slices.SortedStableFunc(slices.Values(rows), func(a, b *cf.BOSHInstance) int { return cmp.Compare(a.Index, b.Index) })
	matched = make([]*cf.BOSHInstance, len(places))
	for _, fits := range []func(r *cf.BOSHInstance, i manifest.Instance) bool{
		func(r *cf.BOSHInstance, i manifest.Instance) bool { return r.Index == i.Index && r.AZ == i.AZ },
		func(r *cf.BOSHInstance, i manifest.Instance) bool { return r.AZ == i.AZ },
		func(r *cf.BOSHInstance, i manifest.Instance) bool { return r.Index == i.Index },
		func(*cf.BOSHInstance, manifest.Instance) bool { return true },
	} {
		for n, i := range places {
			if matched[n] != nil {
				continue
			}
			if at := slices.IndexFunc(others, func(r *cf.BOSHInstance) bool { return fits(r, i) }); at >= 0 {
				matched[n] = others[at]
				others = slices.Delete(others, at, at+1)
			}
		}
	}
	return matched, others
}

// place sets the indexes of a group's rows, and returns the row of each instance, nil for
// a new one. It leaves surplus rows in w.rows, with indexes that a larger group would
// give them. Rows have other indexes than before if the manifest has other AZs, or if an
// earlier version placed them, which made as many instances in each AZ.
func (w *rowWriter) place(g *bosh.Group) ([]*cf.BOSHInstance, error) {
	rows, of := w.rows[g.Name], w.deploy.m.Group(g.Name)
	places, wanted := of.Places(of.Instances+len(rows)*max(len(of.AZs), 1)), of.Instances
	matched, surplus := match(rows, places[:wanted])
	w.rows[g.Name] = surplus
	later, _ := match(surplus, places[wanted:])
	for n, r := range slices.Concat(matched, later) {
		if r != nil {
			r.Index = places[n].Index
		}
	}
	return matched, w.rename(g.Name, rows)
}

// rename writes the rows of a group that have another name now, and tells so in the
// task's events. No two rows can have one name, not even in between: so the rows first
// have indexes that no instance has.
func (w *rowWriter) rename(group string, rows []*cf.BOSHInstance) error {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r *cf.BOSHInstance) bool { return w.names[r.GUID] == instanceKey(r.Group, r.Index) })
	for n, r := range rows {
		index := r.Index
		r.Index = -1 - n
		err := store.BOSHInstances.Update(w.tx, r)
		if r.Index = index; err != nil {
			return err
		}
	}
	for _, r := range rows {
		if err := store.BOSHInstances.Update(w.tx, r); err != nil {
			return err
		}
		text := fmt.Sprintf("%s (%s) becomes %s", w.names[r.GUID], r.GUID, instanceKey(r.Group, r.Index))
		for _, state := range []string{"started", "finished"} {
			if err := store.BOSHTaskEvents.Insert(w.tx, &cf.BOSHTaskEvent{TaskGUID: w.deploy.task.GUID, Stage: "Renaming instances " + group, Subject: text, State: state}); err != nil {
				return err
			}
		}
	}
	return nil
}
