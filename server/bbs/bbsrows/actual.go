package bbsrows

import (
	"maps"
	"slices"

	"cupola/runtime/lrp"
	"cupola/store"
)

// Actuals returns the ActualLRPs that filters of store.ActualLRPs choose, in the
// order they were made. What they point to is shared: it must not be changed.
func (c *Cache) Actuals(tx *store.Tx, where map[string][]string) ([]*lrp.Actual, error) {
	for filter := range where {
		if filter != "domains" && filter != "cell_ids" {
			return store.ActualLRPs.Where(tx, where) // they are few
		}
	}
	tags, err := store.ActualLRPTags.Where(tx, where)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if len(c.actuals) > len(tags)+maxIdle {
		clear(c.actuals)
	}
	list := make([]*lrp.Actual, len(tags))
	missing := map[string]int{} // where in list, by epoch
	for i, t := range tags {
		if list[i] = c.actuals[t.Epoch]; list[i] == nil || list[i].Tag != *t {
			missing[t.Epoch] = i
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return list, nil
	}
	if _, old := missing[""]; old {
		return store.ActualLRPs.Where(tx, where)
	}
	with := maps.Clone(where)
	if with == nil {
		with = map[string][]string{}
	}
	with["epochs"] = slices.Collect(maps.Keys(missing))
	read, err := store.ActualLRPs.Where(tx, with)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range read {
		c.actuals[a.Tag.Epoch] = a
		list[missing[a.Tag.Epoch]] = a
	}
	return slices.DeleteFunc(list, func(a *lrp.Actual) bool { return a == nil }), nil // of rows that are left out
}
