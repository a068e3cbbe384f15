package api

import (
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// recall gets a row for a view, once in a transaction: what rows of a list name
// are often the same, or have been foreseen.
func recall[T any](c *call, t *store.Table[T], guid string) (*T, error) {
	if v, ok := c.recalled[t.Name()+" "+guid]; ok {
		return v.(*T), nil
	}
	v, err := t.Get(c.Tx, guid)
	if err == nil {
		c.remember(t.Name(), guid, v)
	}
	return v, err
}

func (c *call) remember(table, guid string, v any) {
	if c.recalled == nil {
		c.recalled = map[string]any{}
	}
	c.recalled[table+" "+guid] = v
}

// foresee gets the rows that views of a list will recall, all at once.
func foresee[T any](c *call, t *store.Table[T], guid func(*T) string, guids []string) error {
	rows, err := t.By(c.Tx, "guids", guids...)
	for _, v := range rows {
		c.remember(t.Name(), guid(v), v)
	}
	return err
}

func foreseePlans(c *call, instances []*cf.ServiceInstance) error {
	return foresee(c, store.ServicePlans.Table, func(p *cf.ServicePlan) string { return p.GUID }, control.GUIDs(instances, func(i *cf.ServiceInstance) string { return i.PlanGUID }))
}

func foreseeInstances(c *call, guids []string) error {
	return foresee(c, store.ServiceInstances, func(i *cf.ServiceInstance) string { return i.GUID }, guids)
}

// includingInstances gives the service instances with the GUIDs, each once.
func includingInstances(c *call, guids []string) ([]doc, error) {
	rows, err := store.ServiceInstances.By(c.Tx, "guids", guids...)
	if err == nil {
		err = foreseePlans(c, rows)
	}
	return views(c, rows, viewServiceInstance), err
}
